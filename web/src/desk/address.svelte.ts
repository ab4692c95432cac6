// The address bar holds the picks: a link brings a view back, and Back undoes a step.
import type { Picks } from "../source/wire";
import type { Desk } from "./desk.svelte";
import { fromHash, START, toHash } from "./picks";

/** A change of these is a step that Back can undo; the others only rewrite the address. */
const STEPS: (keyof Picks)[] = [
  "view",
  "input",
  "other",
  "tower",
  "layer",
  "heads",
  "tab",
  "map",
  "mapHead",
  "score",
  "across",
  "up",
  "versus",
  "combine",
  "picture",
];

const stepOf = (picks: Picks): string => JSON.stringify(STEPS.map((name) => picks[name]));

/** Call while a component starts. */
export function mirrorToAddress(desk: Desk): void {
  let step = stepOf($state.snapshot(desk.picks));
  let timer: ReturnType<typeof setTimeout> | undefined;
  const write = (picks: Picks) => {
    const next = stepOf(picks);
    const hash = `#${toHash(picks)}`;
    if (hash === location.hash) return;
    try {
      history[next === step ? "replaceState" : "pushState"](null, "", hash);
    } catch {
      // Sandboxed frames may not have an address of their own; the view works without one.
    }
    step = next;
  };
  $effect(() => {
    const picks = $state.snapshot(desk.picks);
    clearTimeout(timer);
    timer = setTimeout(() => write(picks), 120);
  });
  $effect(() => {
    const read = () => {
      const { theme } = desk.picks;
      const picks = { ...START, theme, ...fromHash(location.hash) };
      step = stepOf(picks);
      desk.setPicks(picks);
      step = stepOf($state.snapshot(desk.picks));
    };
    window.addEventListener("popstate", read);
    return () => {
      window.removeEventListener("popstate", read);
      clearTimeout(timer);
    };
  });
}
