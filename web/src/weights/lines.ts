// Which lines are drawn, and how much of the attention do they show?
import type { Picks } from "../source/wire";
import { inOrder, massOf, type HeadRows } from "./rows";

export interface Lines {
  count: number;
  from: Uint32Array;
  to: Uint32Array;
  /** 0 to 1; signed for a difference. */
  weight: Float32Array;
  /** Attention of the lines, and of all their rows. */
  drawn: number;
  total: number;
}

export interface Sieve {
  threshold: number;
  /** 0: no limit. */
  topk: number;
  filter: Picks["filter"];
  rowSegment: (row: number) => number;
  columnSegment: (column: number) => number;
}

export const everything: Sieve = {
  threshold: 0,
  topk: 0,
  filter: "all",
  rowSegment: () => 0,
  columnSegment: () => 0,
};

const SIDES = { all: null, aa: [0, 0], ab: [0, 1], ba: [1, 0], bb: [1, 1] } as const;

export function linesOf(head: HeadRows, sieve: Sieve): Lines {
  if (head.k === head.m && head.index instanceof Uint32Array && isOpen(sieve)) return every(head, head.index);
  const size = head.n * head.k;
  const out = {
    count: 0,
    from: new Uint32Array(size),
    to: new Uint32Array(size),
    weight: new Float32Array(size),
    drawn: 0,
    total: 0,
  };
  const sides = SIDES[sieve.filter];
  for (let row = 0; row < head.n; row++) {
    if (sides && sieve.rowSegment(row) !== sides[0]) continue;
    out.total += head.rest[row];
    const first = row * head.k;
    const least = sieve.topk > 0 && sieve.topk < head.k ? kth(head, first, sieve, sides) : 0;
    let left = sieve.topk > 0 ? sieve.topk : head.k;
    for (let at = first; at < first + head.k; at++) {
      const weight = head.weight[at];
      out.total += Math.abs(weight);
      const size = Math.abs(weight);
      if (size === 0 || size < sieve.threshold || size < least || left === 0) continue;
      if (sides && sieve.columnSegment(head.index[at]) !== sides[1]) continue;
      left -= 1;
      out.from[out.count] = row;
      out.to[out.count] = head.index[at];
      out.weight[out.count] = weight;
      out.drawn += size;
      out.count += 1;
    }
  }
  return out;
}

const isOpen = ({ threshold, topk, filter }: Sieve): boolean => threshold === 0 && topk === 0 && filter === "all";

/** Use all weights of complete rows without a copy; lines of weight 0 are included but never drawn. */
function every(head: HeadRows, to: Uint32Array): Lines {
  const { n, k, weight, rest } = head;
  const drawn = massOf(weight);
  let total = drawn;
  for (let row = 0; row < n; row++) total += rest[row];
  return { count: n * k, from: inOrder("row", n, k), to, weight, drawn, total };
}

/** Get the k-th strongest weight of a row, among the columns that the filter keeps. */
function kth(head: HeadRows, first: number, sieve: Sieve, sides: readonly [number, number] | null): number {
  const sizes: number[] = [];
  for (let at = first; at < first + head.k; at++) {
    if (!sides || sieve.columnSegment(head.index[at]) === sides[1]) sizes.push(Math.abs(head.weight[at]));
  }
  if (sizes.length <= sieve.topk) return 0;
  return Float32Array.from(sizes).sort()[sizes.length - sieve.topk];
}

/** Write a share in percent; a share just below 1 is not written as 100 %. */
export function share(drawn: number, total: number): string {
  if (total <= 0) return "–";
  const percent = (100 * drawn) / total;
  if (percent >= 99.95) return "100 %";
  if (percent >= 99) return `${percent.toFixed(1)} %`;
  return `${percent < 1 ? percent.toFixed(1) : Math.round(percent)} %`;
}

/** Get the first line of a row. */
function startOf({ from, count }: Lines, row: number): number {
  let [low, high] = [0, count];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (from[middle] < row) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Get the lines of some tokens. Lines are sorted by row. */
export function linesOfTokens(lines: Lines, side: "query" | "key", tokens: readonly number[]): Lines {
  const kept: number[] = [];
  const take = (first: number, end: number, wanted: (place: number) => boolean) => {
    for (let place = first; place < end; place++) if (lines.weight[place] !== 0 && wanted(place)) kept.push(place);
  };
  if (side === "query") for (const at of tokens) take(startOf(lines, at), startOf(lines, at + 1), () => true);
  else {
    const wanted = new Set(tokens);
    take(0, lines.count, (place) => wanted.has(lines.to[place]));
  }
  return {
    ...lines,
    count: kept.length,
    from: Uint32Array.from(kept, (place) => lines.from[place]),
    to: Uint32Array.from(kept, (place) => lines.to[place]),
    weight: Float32Array.from(kept, (place) => lines.weight[place]),
  };
}
