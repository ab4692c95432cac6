// What the keys do, once for the handler and once for the list that `?` shows.
import type { Desk } from "./desk.svelte";

interface Key {
  keys: string[];
  shown: string;
  does: string;
  act(desk: Desk): unknown;
}

export const KEYS: Key[] = [
  { keys: ["ArrowLeft"], shown: "←", does: "previous head", act: (desk) => desk.step(-1, 0) },
  { keys: ["ArrowRight"], shown: "→", does: "next head", act: (desk) => desk.step(1, 0) },
  { keys: ["ArrowUp"], shown: "↑", does: "layer above", act: (desk) => desk.step(0, -1) },
  { keys: ["ArrowDown"], shown: "↓", does: "layer below", act: (desk) => desk.step(0, 1) },
  { keys: ["Enter"], shown: "Enter", does: "into the head", act: (desk) => into(desk) },
  { keys: ["Escape"], shown: "Esc", does: "let go of the token, then back to all heads", act: (desk) => desk.out() },
  { keys: ["["], shown: "[", does: "previous input", act: (desk) => desk.stepInput(-1) },
  { keys: ["]"], shown: "]", does: "next input", act: (desk) => desk.stepInput(1) },
  { keys: ["1"], shown: "1", does: "lines", act: (desk) => desk.setTab("text", "head") },
  { keys: ["2"], shown: "2", does: "all heads", act: (desk) => desk.setTab("text", "model") },
  { keys: ["3"], shown: "3", does: "neurons", act: (desk) => desk.setTab("text", "neuron") },
  { keys: ["4"], shown: "4", does: "heat-map", act: (desk) => desk.setTab("text", "heat") },
  { keys: ["m"], shown: "m", does: "the map", act: (desk) => mapTab(desk) },
  { keys: ["i"], shown: "i", does: "the picture", act: (desk) => desk.about.pictures && desk.setTab("image") },
  {
    keys: ["k"],
    shown: "k",
    does: "on a picture: what looks, or what is looked at",
    act: (desk) => desk.picks.tab === "image" && desk.image.swap(),
  },
  {
    keys: ["a"],
    shown: "a",
    does: "all heads of the layer",
    act: (desk) => desk.picks.tab === "text" && desk.allHeads(),
  },
  { keys: ["w"], shown: "w", does: "tokens or whole words", act: (desk) => desk.sieve({ words: !desk.picks.words }) },
  { keys: ["u"], shown: "u", does: "undo hiding or filtering", act: (desk) => desk.undo() },
  { keys: ["r"], shown: "r", does: "redo", act: (desk) => desk.redo() },
];

/** Keys that other parts of the page listen for themselves. */
export const OTHER_KEYS = [
  { shown: "h", does: "hide or show the token under the cursor" },
  { shown: "Space", does: "pin the token in focus" },
  { shown: "Shift ←→↑↓", does: "neighbouring patch, on a picture" },
  { shown: "Home End", does: "first or last token, in a token column" },
  { shown: "/", does: "search, on the map" },
  { shown: "?", does: "this list" },
];

function mapTab(desk: Desk): void {
  if (desk.about.maps.length > 0 || desk.about.can_compute) desk.setTab("map");
}

function into(desk: Desk): void {
  if (desk.picks.tab === "map") return desk.map.enter(desk.focus);
  if (desk.picks.view === "model") desk.picks.view = "head";
}

/** Returns whether the key was one of ours. */
export function pressed(desk: Desk, event: KeyboardEvent): boolean {
  if (event.altKey) return false;
  if (event.ctrlKey || event.metaKey) {
    if (event.key.toLowerCase() !== "z") return false;
    if (event.shiftKey) desk.redo();
    else desk.undo();
    return true;
  }
  const key = KEYS.find((one) => one.keys.includes(event.key));
  key?.act(desk);
  return key !== undefined;
}
