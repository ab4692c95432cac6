// Which tokens of a long input do the Lines and the inspector show? A window of queries, and one of keys.
import type { TokenPick } from "../source/wire";

/** Tokens of a window. */
export const WIDE = 128;

export interface Window {
  /** The first query and the first key. */
  rows: number;
  columns: number;
}

/** Get the window of an axis around a token. */
export function startAround(position: number, count: number): number {
  return Math.max(0, Math.min(count - WIDE, position - WIDE / 2));
}

/** Keep the start of a window inside the input. */
export function startWithin(first: number, count: number): number {
  return Math.max(0, Math.min(Math.max(0, count - WIDE), Math.round(first)));
}

/** Get both windows around a token, and around the key that was picked with it if that is elsewhere. */
export function windowAround({ side, position }: TokenPick, key: number | null, rows: number, columns: number): Window {
  const first = startAround(position, side === "query" ? rows : columns);
  const both = { rows: startWithin(first, rows), columns: startWithin(first, columns) };
  if (side === "key" || key === null || contains(both.columns, key)) return both;
  return { ...both, columns: startAround(key, columns) };
}

const contains = (first: number, position: number): boolean => position >= first && position < first + WIDE;

/** Tell whether a token, and the key that was picked with it, are in the windows. */
export function inside({ rows, columns }: Window, { side, position }: TokenPick, key: number | null): boolean {
  if (side === "key") return contains(columns, position);
  return contains(rows, position) && (key === null || contains(columns, key));
}
