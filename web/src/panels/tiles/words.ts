// How does the page say what is in a cell and how much of the attention is drawn?
import type { Picks } from "../../source/wire";
import type { Reading } from "../../tiles/cells";
import { share } from "../../weights/lines";

/** Write a position, or the first and the last of several. */
export const spanText = ([first, last]: readonly [number, number]): string =>
  first === last ? count(first) : `${count(first)}–${count(last)}`;

export const count = (value: number): string => value.toLocaleString("en");

/** Write a weight with three digits, however small it is. */
export function small(weight: number): string {
  if (weight === 0) return "0";
  if (weight < 0) return `−${small(-weight)}`;
  return weight >= 0.0995 ? weight.toFixed(3) : String(Number(weight.toPrecision(3)));
}

const ONE: Record<Picks["shown"], string> = { weights: "weight", moved: "moved", contribution: "contribution" };

/** Say what a cell holds: one weight, or the strongest and the mean of several. */
export function holds(
  { rows, columns, strongest, mean, mass, sampled }: Reading,
  shown: Picks["shown"] = "weights",
): string {
  if (rows[0] === rows[1] && columns[0] === columns[1]) return `${ONE[shown]} ${small(strongest)}`;
  const size = `${rows[1] - rows[0] + 1} × ${columns[1] - columns[0] + 1} ${shown === "contribution" ? "contributions" : "weights"}`;
  const about = sampled ? "about " : "";
  const sizes = shown === "contribution" ? " size" : "";
  const least = sampled ? (strongest < 0 ? "at most " : "at least ") : "";
  return `strongest ${least}${small(strongest)} · mean${sizes} ${about}${small(mean)} · sum${sizes && " of sizes"} ${about}${small(mass)} of ${size}`;
}

/** Name what the tiles are made of. */
export const seenName = (shown: Picks["shown"]): string =>
  ({ weights: "all attention", moved: "all that is moved", contribution: "all contributions" })[shown];
const IN_VIEW: Record<Picks["shown"], string> = {
  weights: "the attention",
  moved: "what is moved",
  contribution: "the contributions (sizes)",
};

/** Say how much of the attention in view has a colour that can be seen. */
export const seenText = ({ seen, all }: { seen: number; all: number }, shown: Picks["shown"] = "weights"): string =>
  all > 0
    ? `at this zoom ${share(seen, all)} of ${IN_VIEW[shown]} in view is above the faintest colour`
    : "no attention here: these tokens do not look at each other";
