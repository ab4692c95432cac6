// What does each key do? One table for the handler and for the list that `?` shows.
import type { Desk } from "./desk.svelte";
import { tabsOf } from "./tab";
import { chooseAtHover, hideAtHover, stepToken } from "./tokens";

/** A key in the list; a `Shown` that is not a `Key` is handled by the part of the page where it applies. */
export interface Shown {
  shown: string;
  does: string;
}

export interface Key extends Shown {
  key: string;
  act(desk: Desk, frame: Frame): unknown;
  /** Tell whether the page has the key; without this it always has. */
  when?(desk: Desk): boolean;
}

/** What a key or a command may ask of the frame around the panel. */
export interface Frame {
  /** Open the controls and put the cursor into one of them. */
  focusControl(selector: string): void;
  listKeys(): void;
  /** Open the menu of edits for what is under the cursor or has the focus. */
  editHere(): void;
  /** Open the list of commands. */
  listCommands(): void;
  /** Press a button of the page as soon as it is there. */
  press(selector: string): unknown;
  /** Save the panel as a figure. */
  save(kind: "svg" | "png"): unknown;
  /** Copy a link to this view. */
  share(): unknown;
}

export const EVERYWHERE: readonly Key[] = [
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
  {
    key: "n",
    shown: "n",
    does: "story: next step, or go on where it was left",
    act: (desk) => desk.guide.next(),
    when: (desk) => desk.guide.steps.length > 0,
  },
  {
    key: "p",
    shown: "p",
    does: "story: step before",
    act: (desk) => desk.guide.back(),
    when: (desk) => desk.guide.steps.length > 0,
  },
  {
    key: "x",
    shown: "x",
    does: "leave the story, or close the hints for good",
    act: (desk) => desk.guide.leave(),
    when: (desk) => desk.guide.steps.length > 0 || desk.guide.hinting,
  },
  { key: "?", shown: "?", does: "show this list", act: (_desk, frame) => frame.listKeys() },
];

/** The keys of tabs that show the tokens of an input. */
export const TOKEN_KEYS: readonly Key[] = [
  { key: ",", shown: ",", does: "pin the token before", act: (desk) => (desk.tab.stepToken ?? stepToken)(desk, -1) },
  {
    key: ".",
    shown: ".",
    does: "pin the next token; the first time, the first generated one",
    act: (desk) => (desk.tab.stepToken ?? stepToken)(desk, 1),
  },
];

const ELSEWHERE: readonly Shown[] = [
  { shown: "Ctrl K", does: "find a command: head, tab, input, colour, view, export …" },
  { shown: "Ctrl Z", does: "undo; with Shift: redo" },
  { shown: "Tab", does: "next control; arrow keys go on inside a group" },
  { shown: "Right click", does: "edit the head, token, line or neuron under the cursor" },
];

const has = (desk: Desk) => (key: Key | Shown) => !("when" in key) || (key.when?.(desk) ?? true);

/** List the keys that lead to a tab or view. */
export const waysOf = (desk: Desk): Key[] => tabsOf(desk).flatMap((tab) => tab.ways ?? []);

/** List every key of this page, each once, by where it works. */
export function grouped(desk: Desk): { title: string; keys: Shown[] }[] {
  const seen = new Set<Shown>();
  const fresh = (keys: readonly Shown[]) => keys.filter((key) => has(desk)(key) && !seen.has(key) && seen.add(key));
  return [
    { title: "Everywhere", keys: fresh([...EVERYWHERE, ...ELSEWHERE]) },
    { title: "Go to", keys: fresh(waysOf(desk)) },
    ...tabsOf(desk).map((tab) => ({ title: tab.title, keys: fresh(tab.keys ?? []) })),
  ].filter(({ keys }) => keys.length > 0);
}

/** List every key of this page, each once. */
export const listed = (desk: Desk): Shown[] => grouped(desk).flatMap(({ keys }) => keys);

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
  const all = [...tabKeys, ...EVERYWHERE, ...waysOf(desk)].filter(has(desk));
  const key = all.find((candidate) => candidate.key === event.key);
  key?.act(desk, frame);
  return key !== undefined;
}
