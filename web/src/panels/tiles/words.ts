// How does the page say what is in a cell and how much of the attention is drawn?
import type { Reading } from "../../tiles/cells";
import { share } from "../../weights/lines";

/** Write a position, or the first and the last of several. */
export const spanText = ([first, last]: readonly [number, number]): string =>
  first === last ? count(first) : `${count(first)}–${count(last)}`;

export const count = (value: number): string => value.toLocaleString("en");

/** Write a weight with three digits, however small it is. */
export function small(weight: number): string {
  if (weight === 0) return "0";
  return weight >= 0.0995 ? weight.toFixed(3) : String(Number(weight.toPrecision(3)));
}

/** Say what a cell holds: one weight, or the strongest and the mean of several. */
export function holds({ rows, columns, strongest, mean, mass, sampled }: Reading): string {
  if (rows[0] === rows[1] && columns[0] === columns[1]) return `weight ${small(strongest)}`;
  const size = `${rows[1] - rows[0] + 1} × ${columns[1] - columns[0] + 1} weights`;
  const about = sampled ? "about " : "";
  return `strongest ${sampled ? "at least " : ""}${small(strongest)} · mean ${about}${small(mean)} · sum ${about}${small(mass)} of ${size}`;
}

/** Say how much of the attention in view has a colour that can be seen. */
export const seenText = ({ seen, all }: { seen: number; all: number }): string =>
  all > 0
    ? `at this zoom ${share(seen, all)} of the attention in view is above the faintest colour`
    : "no attention here: these tokens do not look at each other";
