// Where does the inspector read the picked token, and how does it name tokens?
import type { Desk } from "../../desk/desk.svelte";
import type { TokenPick } from "../../source/wire";
import type { HeadRows } from "../../weights/rows";

export interface Reading {
  /** The heads whose attention it is. */
  title: string;
  /** What a person points at. */
  noun: "token" | "patch";
  rows: readonly HeadRows[];
  /** Get the place of a token among rows or columns, or −1. */
  at(token: TokenPick): number;
  nameAt(side: TokenPick["side"], place: number): string;
  /** The texts where nothing is picked, and where the token has no attention to show. */
  invite: string;
  none: string;
  /** Whether there is a link to the token's point on the map. */
  toMap: boolean;
}

/** Read the tokens of the Text tab, or words where tokens are merged. */
export function tokenReading(desk: Desk): Reading {
  const { one } = desk;
  const units = (side: TokenPick["side"]) => (side === "query" ? one.rowUnits : one.columnUnits);
  return {
    title: desk.picks.heads.length === 1 ? desk.focus : `Layer ${desk.place.layer}`,
    noun: "token",
    rows: one.rows,
    at: ({ side, position }) => units(side).findIndex((unit) => unit.positions.includes(position)),
    nameAt: (side, place) => units(side)[place]?.text ?? "",
    invite: "Point at a token to see its weights; click to keep it.",
    none: "No attention to show: all of it is hidden or filtered out.",
    toMap: desk.about.maps.length > 0,
  };
}
