// Which numbers do the panels of the Heads tab show, and in which order?
import { headPlace } from "../desk/picks";
import * as wire from "../source/wire";
import type { About, HeadScores } from "../source/wire";

export const KIND_COLOURS: Readonly<Record<string, string>> = wire.KIND_COLOURS;
export const KINDS = Object.keys(KIND_COLOURS);

export interface Column {
  name: string;
  title: string;
  of(head: number): number;
}

/** Get the column of a name: a score, or one of `HEAD_NUMBERS`; undefined where there is none. */
export function column(scores: HeadScores, name: string): Column | undefined {
  if (isHeadNumber(name)) {
    const { data } = scores[name];
    return { name, title: wire.HEAD_NUMBERS[name], of: (head) => data[head] };
  }
  const row = scores.measures.findIndex((measure) => measure.name === name);
  if (row < 0) return undefined;
  return { name, title: scores.measures[row].title, of: (head) => scores.value.data[row * scores.heads.length + head] };
}

const isHeadNumber = (name: string): name is keyof typeof wire.HEAD_NUMBERS => name in wire.HEAD_NUMBERS;

/** List every number of a head for a menu: scores, then `HEAD_NUMBERS`. */
export const numbersOf = (scores: HeadScores | undefined): { name: string; title: string }[] => [
  ...(scores?.measures ?? []).map(({ name, title }) => ({ name, title })),
  ...Object.entries(wire.HEAD_NUMBERS).map(([name, title]) => ({ name, title })),
];

export const kindOf = (scores: HeadScores, head: number): string => scores.kinds[scores.kind.data[head]] ?? "";

/** List the heads of some kinds (of all, if none is given), sorted; heads without a number come last. */
export function listed(scores: HeadScores, kinds: readonly string[], order: string): number[] {
  const heads = scores.heads
    .map((_, head) => head)
    .filter((head) => kinds.length === 0 || kinds.includes(kindOf(scores, head)));
  const down = order.startsWith("-");
  const name = order.replace(/^-/, "");
  if (name === "head") return down ? heads.reverse() : heads;
  if (name === "kind")
    return heads.sort((a, b) => (down ? -1 : 1) * (kindOf(scores, a).localeCompare(kindOf(scores, b)) || a - b));
  const by = column(scores, name);
  if (!by) return heads;
  const sign = down ? 1 : -1;
  return heads.sort((a, b) => {
    const [x, y] = [by.of(a), by.of(b)];
    if (Number.isNaN(x) || Number.isNaN(y)) return Number(Number.isNaN(x)) - Number(Number.isNaN(y)) || a - b;
    return sign * (x - y) || a - b;
  });
}

export function range(values: Iterable<number>): [number, number] {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (low > high) return [0, 1];
  return low === high ? [low - 0.5, high + 0.5] : [low, high];
}

export interface Cell {
  head: number;
  row: number;
  across: number;
}

/** Get the row and column of each head in the picture of layers × heads; towers are below each other. */
export function cells(scores: HeadScores, about: About): Cell[] {
  const rows = new Map<string, number>();
  for (const tower of about.towers)
    for (const layer of tower.layers) rows.set(`${tower.name}.${layer.layer}`, rows.size);
  return scores.heads.flatMap((name, head) => {
    const place = headPlace(about, name);
    const row = place ? rows.get(`${place.tower}.${place.layer}`) : undefined;
    return place && row !== undefined ? [{ head, row, across: place.head }] : [];
  });
}

/** Write a number for a table, with three decimals; none from 100 on. */
export const figure = (value: number): string =>
  Number.isNaN(value) ? "–" : Math.abs(value) >= 100 ? value.toFixed(0) : value.toFixed(3);

/** Count the values in each of `count` equal parts of a range; the last part includes its end. */
export function bins(values: readonly number[], [low, high]: readonly number[], count: number): number[] {
  const counts = new Array<number>(count).fill(0);
  for (const value of values)
    if (value >= low && value <= high)
      counts[Math.min(count - 1, Math.floor(((value - low) / (high - low)) * count))]++;
  return counts;
}

export interface Summary {
  heads: number;
  mean: number;
  deviation: number;
  quarters: [number, number, number, number, number];
}

/** Compute the figures of the study's Table 1 for a score; the deviation divides by n, as RI does. */
export function summary(values: readonly number[]): Summary {
  const known = values.filter(Number.isFinite).sort((a, b) => a - b);
  const mean = known.reduce((sum, value) => sum + value, 0) / known.length;
  const varies = known.reduce((sum, value) => sum + (value - mean) ** 2, 0) / known.length;
  const at = (share: number) => {
    const place = share * (known.length - 1);
    const low = Math.floor(place);
    return known[low] + (known[Math.min(known.length - 1, low + 1)] - known[low]) * (place - low);
  };
  return {
    heads: known.length,
    mean,
    deviation: Math.sqrt(varies),
    quarters: known.length ? [at(0), at(0.25), at(0.5), at(0.75), at(1)] : [NaN, NaN, NaN, NaN, NaN],
  };
}

/** Get the score of the distribution: that of the picture, or if the picture shows kinds, one of the scatter plot. */
export function distributed(score: string, across: string, up: string): string {
  return [score, across, up].find((name) => name !== "kind" && name !== "alike") ?? "importance-chosen";
}
