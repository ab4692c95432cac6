// What do the frame and the desk ask a tab? A new tab is a folder in panels/ and a line in panels/tabs.ts.
import type { Component } from "svelte";
import type { About, Picks, TokenPick } from "../source/wire";
import type { Command } from "./command";
import type { Chrome, Desk } from "./desk.svelte";
import type { Key, Shown } from "./keys";
import type { Chosen } from "./picks";

/**
 * What a tab needs from the source; only what the current tab needs is loaded. "layer" is the attention of the layer in
 * view, "attention" that of all layers, "edits" what the model says of the input.
 */
export type Need = "attention" | "layer" | "pictures" | "map" | "edits";

export interface Hint {
  lead: string;
  text: string;
  /** Tell whether the view on screen has what the hint speaks of; without this it always has. */
  applies?(desk: Desk): boolean;
}

export type Part = Component<{ desk: Desk }>;

export interface Tab {
  /** The name in addresses and in Python. */
  readonly name: string;
  readonly title: string;
  /** What the tab shows, in one line: the tooltip of its button. */
  readonly about: string;

  /** Tell whether the tab is shown for this atlas; without this it always is. */
  applies?(desk: Desk): boolean;
  /** Tell whether a page opens on this tab, if neither a link nor the host names one. */
  opens?(about: About, chrome: Chrome): boolean;
  /** Tell whether the bar of a notebook cell has a button for the tab. */
  inCell?(desk: Desk): boolean;

  /** Get the component in the middle of the page. */
  panel(desk: Desk): Part;
  /** The component on the left. */
  readonly controls?: Part;
  /** The component on the right, above the input and the model. */
  readonly inspector?: Part;
  /** The row between the top bar and the panel: the views of the tab. */
  readonly bar?: Part;
  /** The component in the slim bar of a notebook cell; `narrow` is true where a row of buttons has no room. */
  readonly cellBar?: Component<{ desk: Desk; narrow: boolean }>;

  /** The hints for a first visit. */
  readonly hints?: readonly Hint[];
  /** List the texts in the status bar; each has a name for its test id. */
  status?(desk: Desk): { name: string; text: string }[];
  /** Name a token for the status bar. */
  tokenName?(desk: Desk, token: TokenPick): string;
  /** The constant text at the end of the status bar. */
  readonly legend?: string;

  /** Keys that work in this tab, and keys that work everywhere and lead to it. */
  readonly keys?: readonly (Key | Shown)[];
  readonly ways?: readonly Key[];
  /** List what the tab offers by name in the command palette, besides its keys. */
  commands?(desk: Desk): readonly Command[];
  /** Pin the next (1) or previous (−1) token; without this, of those that look. */
  stepToken?(desk: Desk, by: number): void;
  /** What Enter does, and what Escape does when no token is picked. */
  into?(desk: Desk): void;
  out?(desk: Desk): void;

  /** List what the tab needs from the source; without this, attention. */
  needs?(desk: Desk): readonly Need[];
  /** Tell whether the tab shows attention of the picked input, which edits can change. */
  closeUp?(desk: Desk): boolean;
  /** Get the one head that the tab shows; null or undefined if it shows all picked heads. */
  alone?(picks: Pick<Picks, "heads" | "mapHead">): string | null | undefined;

  /** Picks that undo restores, and picks whose change the browser's Back undoes. */
  readonly undo?: readonly (keyof Chosen)[];
  readonly steps?: readonly (keyof Picks)[];

  /** Get the part of an exported file's name; without this, the name of the tab. */
  figureName?(desk: Desk): string;
  /** Tell whether this is the view offered where another cannot be drawn. */
  isPlain?(desk: Desk): boolean;
}

/** Get the tab of a name, or else the tab that a page opens on: the first that `opens`, or the one with `isPlain`. */
export function tabNamed(tabs: readonly Tab[], name: string | undefined, about: About, chrome: Chrome): Tab {
  return (
    tabs.find((tab) => tab.name === name) ??
    tabs.find((tab) => tab.opens?.(about, chrome)) ??
    tabs.find((tab) => tab.isPlain) ??
    tabs[0]
  );
}

export const tabsOf = (desk: Desk): Tab[] => desk.tabs.filter((tab) => tab.applies?.(desk) ?? true);
