// Where tokens and lines stand.
import type { Unit } from "../../weights/units";

export const FONT = 12.5;
/** Width of one letter of the token font, in its size. */
const LETTER = 0.61;
/** Rows that can be read, and the highest that lines of a short sentence take. */
const LEAST = 18;
const MOST = 110;

export function columnWidth(units: Unit[], width: number): number {
  let longest = 3;
  for (const unit of units) longest = Math.max(longest, Math.min(24, [...unit.text].length));
  return Math.round(Math.min(width * 0.3, longest * FONT * LETTER + 22));
}

/** Returns the row height that fills the height there is, up to `most`; rows scroll rather than be too low to read. */
export function rowHeight(rows: number, height: number, fit: boolean, most = MOST): number {
  const all = Math.min(most, height / Math.max(1, rows));
  return fit ? all : Math.max(LEAST, all);
}

/** Rows in view, with a few to spare; every step-th where they stand closer than letters. */
export function rowsInView(count: number, row: number, top: number, height: number): number[] {
  const step = Math.max(1, Math.ceil(11 / row));
  const first = Math.floor(Math.max(0, top / row - 2) / step) * step;
  const last = Math.min(count - 1, Math.ceil((top + height) / row) + 2);
  const out: number[] = [];
  for (let at = first; at <= last; at += step) out.push(at);
  return out;
}

export function unitAt(units: Unit[], position: number | undefined): number {
  return position === undefined ? -1 : units.findIndex((unit) => unit.positions.includes(position));
}
