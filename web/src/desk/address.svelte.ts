// How does the address hold the picks? A link restores a view; the browser's Back undoes a step.
import type { Picks } from "../source/wire";
import type { Desk } from "./desk.svelte";
import { fromHash, START, toHash } from "./picks";

/** A change of these, or of the steps of a tab, can be undone with Back; other changes only rewrite the address. */
const STEPS: (keyof Picks)[] = ["input", "heads", "tab"];

/** Keep address and picks equal; call while a component is initialised. */
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
      // A sandboxed frame may not change its address; the view works without.
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
