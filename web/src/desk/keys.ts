// What does each key do? One table for the handler and for the list that `?` shows.
import type { Desk } from "./desk.svelte";
import { tabsOf } from "./tab";
import { chooseAtHover, hideAtHover } from "./tokens";

/** A key in the list; a `Shown` that is not a `Key` is handled by the part of the page where it applies. */
export interface Shown {
  shown: string;
  does: string;
}

export interface Key extends Shown {
  key: string;
  act(desk: Desk, frame: Frame): unknown;
}

/** What a key may ask of the frame around the panel. */
export interface Frame {
  /** Open the controls and put the cursor into one of them. */
  focusControl(selector: string): void;
  listKeys(): void;
  /** Open the menu of edits for what is under the cursor or has the focus. */
  editHere(): void;
}

const EVERYWHERE: Key[] = [
  { key: "ArrowLeft", shown: "←", does: "previous head", act: (desk) => desk.step(-1, 0) },
  { key: "ArrowRight", shown: "→", does: "next head", act: (desk) => desk.step(1, 0) },
  { key: "ArrowUp", shown: "↑", does: "layer above", act: (desk) => desk.step(0, -1) },
  { key: "ArrowDown", shown: "↓", does: "layer below", act: (desk) => desk.step(0, 1) },
  { key: "Enter", shown: "Enter", does: "open the head", act: (desk) => desk.tab.into?.(desk) },
  { key: "Escape", shown: "Esc", does: "release the token; again: back to all heads", act: (desk) => desk.out() },
  { key: "[", shown: "[", does: "previous input", act: (desk) => desk.stepInput(-1) },
  { key: "]", shown: "]", does: "next input", act: (desk) => desk.stepInput(1) },
  {
    key: "w",
    shown: "w",
    does: "switch between tokens and whole words",
    act: (desk) => desk.sieve({ words: !desk.picks.words }),
  },
  { key: "s", shown: "s", does: "add the token under the cursor to the set of picked tokens", act: chooseAtHover },
  {
    key: "b",
    shown: "b",
    does: "set of tokens: mean or sum of their attention",
    act: (desk) => desk.sieve({ together: desk.picks.together === "mean" ? "sum" : "mean" }),
  },
  { key: "h", shown: "h", does: "hide or show the token under the cursor", act: hideAtHover },
  {
    key: "e",
    shown: "e",
    does: "edit the head, token, line or neuron under the cursor",
    act: (_desk, frame) => frame.editHere(),
  },
  {
    key: "v",
    shown: "v",
    does: "with edits: before, after or difference",
    act: (desk) => desk.lab.nextView(),
  },
  { key: "u", shown: "u", does: "undo hiding, filtering or editing", act: (desk) => desk.undo() },
  { key: "r", shown: "r", does: "redo", act: (desk) => desk.redo() },
  { key: "?", shown: "?", does: "show this list", act: (_desk, frame) => frame.listKeys() },
];

const ELSEWHERE: Shown[] = [
  { shown: "Space", does: "pin the token in focus" },
  { shown: "Home End", does: "first or last token, in a token column" },
  { shown: "Ctrl Z", does: "undo; with Shift: redo" },
  { shown: "Ctrl click", does: "add a token or patch to the set of picked tokens" },
  { shown: "Shift click", does: "pick all tokens from the last picked one to this one" },
  { shown: "Ctrl ↑ ↓ Space", does: "in a token column: go without letting go, add to the set" },
  { shown: "Shift ↑ ↓", does: "in a token column: pick the next token too" },
  { shown: "Alt click", does: "hide or show a token" },
  { shown: "Right click", does: "edit the head, token, line or neuron under the cursor" },
];

const ways = (desk: Desk): Key[] => tabsOf(desk).flatMap((tab) => tab.ways ?? []);

/** List every key of this page, each once. */
export function listed(desk: Desk): Shown[] {
  const tabKeys = tabsOf(desk).flatMap((tab) => tab.keys ?? []);
  return [...new Set([...EVERYWHERE, ...ways(desk), ...tabKeys, ...ELSEWHERE])];
}

/** Do what a key is for; return whether the page has this key. */
export function pressed(desk: Desk, event: KeyboardEvent, frame: Frame): boolean {
  if (event.altKey) return false;
  if (event.ctrlKey || event.metaKey) {
    if (event.key.toLowerCase() !== "z") return false;
    if (event.shiftKey) desk.redo();
    else desk.undo();
    return true;
  }
  const tabKeys = (desk.tab.keys ?? []).filter((key) => "key" in key);
  const key = [...tabKeys, ...EVERYWHERE, ...ways(desk)].find((candidate) => candidate.key === event.key);
  key?.act(desk, frame);
  return key !== undefined;
}
