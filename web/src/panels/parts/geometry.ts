// Where are tokens and lines drawn?
import { columns } from "../../draw/letters";
import type { Unit } from "../../weights/units";

export const FONT = 12.5;
/** Width of one letter of the token font, in its size. */
const LETTER = 0.61;
/** The lowest row that can be read, and the highest row of a short sentence. */
const LEAST = 18;
const MOST = 110;

export function columnWidth(units: Unit[], width: number): number {
  let longest = 3;
  for (const unit of units) longest = Math.max(longest, Math.min(24, columns(unit.text)));
  return Math.round(Math.min(width * 0.3, longest * FONT * LETTER + 22));
}

/** Get the row height that fills `height`, up to `most`; rows too low to read are raised and scroll, unless `fit`. */
export function rowHeight(rows: number, height: number, fit: boolean, most = MOST): number {
  const all = Math.min(most, height / Math.max(1, rows));
  return fit ? all : Math.max(LEAST, all);
}

/** List the rows in view and a few more; every step-th where rows are lower than letters. */
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
