// The address bar holds the picks: a link brings a view back, and Back undoes a step.
import type { Picks } from "../source/wire";
import type { Desk } from "./desk.svelte";
import { fromHash, START, toHash } from "./picks";

/** A change of these, or of what a tab names, is a step that Back can undo; the others only rewrite the address. */
const STEPS: (keyof Picks)[] = ["input", "heads", "tab"];

/** Call while a component starts. */
export function mirrorToAddress(desk: Desk): void {
  const names = [...STEPS, ...desk.tabs.flatMap((tab) => tab.steps ?? [])];
  const stepOf = (picks: Picks): string => JSON.stringify(names.map((name) => picks[name]));
  let step = stepOf(desk.snapshot());
  let timer: ReturnType<typeof setTimeout> | undefined;
  const write = (picks: Picks) => {
    const next = stepOf(picks);
    const hash = `#${toHash(picks, desk.opening)}`;
    if (hash === location.hash) return;
    try {
      history[next === step ? "replaceState" : "pushState"](null, "", hash);
    } catch {
      // Sandboxed frames may not have an address of their own; the view works without one.
    }
    step = next;
  };
  $effect(() => {
    const picks = desk.snapshot();
    clearTimeout(timer);
    timer = setTimeout(() => write(picks), 120);
  });
  $effect(() => {
    const read = () => {
      const { theme } = desk.picks;
      const picks = { ...START, theme, ...fromHash(location.hash) };
      desk.setPicks(picks);
      step = stepOf(desk.snapshot());
    };
    window.addEventListener("popstate", read);
    return () => {
      window.removeEventListener("popstate", read);
      clearTimeout(timer);
    };
  });
}
