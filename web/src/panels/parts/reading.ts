// How the inspector reads the picked token: from which rows, and how tokens are called.
import type { Desk } from "../../desk/desk.svelte";
import type { TokenPick } from "../../source/wire";
import type { HeadRows } from "../../weights/rows";

export interface Reading {
  /** Whose attention it is. */
  title: string;
  /** What is pointed at. */
  noun: "token" | "patch";
  rows: readonly HeadRows[];
  /** Place of a token among rows or columns; −1 where it has none. */
  at(token: TokenPick): number;
  nameAt(side: TokenPick["side"], place: number): string;
  /** What is said where nothing is picked, and where nothing is left of its attention. */
  invite: string;
  none: string;
  /** Whether it leads to the token's point on the map. */
  toMap: boolean;
}

/** Reads tokens of the Text tab's rows, or words where pieces are merged. */
export function tokenReading(desk: Desk): Reading {
  const { one } = desk;
  const units = (side: TokenPick["side"]) => (side === "query" ? one.rowUnits : one.columnUnits);
  return {
    title: desk.picks.heads.length === 1 ? desk.focus : `Layer ${desk.place.layer}`,
    noun: "token",
    rows: one.rows,
    at: ({ side, position }) => units(side).findIndex((unit) => unit.positions.includes(position)),
    nameAt: (side, place) => units(side)[place]?.text ?? "",
    invite: "Point at a token to read its numbers; click keeps it.",
    none: "No attention left to show.",
    toMap: desk.about.maps.length > 0,
  };
}
