// What the frame and the desk ask a tab. A new tab is a folder in panels/ and its line in panels/tabs.ts.
import type { Component } from "svelte";
import type { About, Picks, TokenPick } from "../source/wire";
import type { Chrome, Desk } from "./desk.svelte";
import type { Key, Shown } from "./keys";
import type { Chosen } from "./picks";

/**
 * What a tab may need from the source; what no tab in front needs is not asked for. "layer" is the attention of the
 * one layer in view, "attention" that of all layers.
 */
export type Need = "attention" | "layer" | "pictures" | "map";

export interface Hint {
  lead: string;
  text: string;
}

export type Part = Component<{ desk: Desk }>;

export interface Tab {
  /** Its name in addresses and in Python. */
  readonly name: string;
  readonly title: string;
  /** What it shows, in one line. */
  readonly about: string;

  /** Whether this atlas has something for it; a tab without this is always there. */
  applies?(desk: Desk): boolean;
  /** Whether pages open on it where neither a link nor the host says otherwise. */
  opens?(about: About, chrome: Chrome): boolean;
  /** Whether the bar of a notebook cell leads to it. */
  inCell?(desk: Desk): boolean;

  panel(desk: Desk): Part;
  readonly controls?: Part;
  /** Stands in the inspector, before the input and the model. */
  readonly inspector?: Part;
  /** Stands in the bar behind the names of the tabs; `slim` in the bar of a cell. */
  readonly bar?: Component<{ desk: Desk; slim: boolean }>;

  /** What a first visit is told. */
  readonly hints?: readonly Hint[];
  /** What the status bar says of it: names for tests, and texts. */
  status?(desk: Desk): { name: string; text: string }[];
  /** How the status bar calls a token. */
  tokenName?(desk: Desk, token: TokenPick): string;
  /** What is always true of its picture, at the end of the status bar. */
  readonly legend?: string;

  /** Keys while it is in front, and keys that lead to it from everywhere. */
  readonly keys?: readonly (Key | Shown)[];
  readonly ways?: readonly Key[];
  /** One step into the head in focus, and one out, once no token is picked. */
  into?(desk: Desk): void;
  out?(desk: Desk): void;

  /** What it needs from the source: attention, where it does not say. */
  needs?(desk: Desk): readonly Need[];
  /** The one head that it shows; nothing where it shows all that are picked. */
  alone?(picks: Pick<Picks, "heads" | "mapHead">): string | null | undefined;

  /** Picks that undo brings back, and picks whose change is a step of the browser's Back. */
  readonly undo?: readonly (keyof Chosen)[];
  readonly steps?: readonly (keyof Picks)[];

  /** The name of its figure in a file's name; its own where it does not say. */
  figureName?(desk: Desk): string;
  /** Whether this is the view that is offered where another cannot be drawn. */
  isPlain?(desk: Desk): boolean;
}

/** The tab of that name, or the one that a page opens on: the first that wants to, else the one with the plain view. */
export function tabNamed(tabs: readonly Tab[], name: string | undefined, about: About, chrome: Chrome): Tab {
  return (
    tabs.find((tab) => tab.name === name) ??
    tabs.find((tab) => tab.opens?.(about, chrome)) ??
    tabs.find((tab) => tab.isPlain) ??
    tabs[0]
  );
}

export const tabsOf = (desk: Desk): Tab[] => desk.tabs.filter((tab) => tab.applies?.(desk) ?? true);
