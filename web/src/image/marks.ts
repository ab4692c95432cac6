// Where do patches look? Arrow: another patch; circle: itself; square: a token that has no place.
import { FAINTEST } from "../source/wire";
import type { Patch } from "./patches";

export interface Mark {
  kind: "arrow" | "circle" | "square";
  from: number;
  to: number;
  weight: number;
}

/** Weights of n tokens that look at m tokens, and the places of both. */
export interface Looks {
  weights: Float32Array;
  m: number;
  queries: readonly (Patch | undefined)[];
  keys: readonly (Patch | undefined)[];
  /** Whether both sides are the same tokens. */
  same: boolean;
}

function kindOf({ keys, same }: Looks, from: number, to: number): Mark["kind"] {
  if (same && from === to) return "circle";
  return keys[to] ? "arrow" : "square";
}

/** List one mark for each patch: its strongest key, if the weight is at least `least`. */
export function strongest(looks: Looks, least: number = FAINTEST): Mark[] {
  const out: Mark[] = [];
  looks.queries.forEach((patch, from) => {
    if (!patch) return;
    const row = looks.weights.subarray(from * looks.m, (from + 1) * looks.m);
    let to = 0;
    for (let key = 1; key < row.length; key++) if (row[key] > row[to]) to = key;
    if (row[to] >= least) out.push({ kind: kindOf(looks, from, to), from, to, weight: row[to] });
  });
  return out;
}

/** List every weight of a patch of at least `least`, strongest last, so that it is drawn on top. */
export function flows(looks: Looks, least: number): Mark[] {
  const out: Mark[] = [];
  looks.queries.forEach((patch, from) => {
    if (!patch) return;
    for (let to = 0; to < looks.m; to++) {
      const weight = looks.weights[from * looks.m + to];
      if (weight >= least && weight > 0) out.push({ kind: kindOf(looks, from, to), from, to, weight });
    }
  });
  return out.sort((a, b) => a.weight - b.weight);
}

export function counts(marks: readonly Mark[]): Record<Mark["kind"], number> {
  const out = { arrow: 0, circle: 0, square: 0 };
  for (const mark of marks) out[mark.kind]++;
  return out;
}

/** Get the largest weight of any patch. */
export function largest({ weights, m, queries }: Looks): number {
  let most = 0;
  for (let at = 0; at < weights.length; at++) if (weights[at] > most && queries[Math.floor(at / m)]) most = weights[at];
  return most;
}

/** Get the weights of some tokens with all tokens of the other side, rows or columns, summed or averaged. */
export function looksOf(
  { weights, m }: Looks,
  side: "query" | "key",
  positions: readonly number[],
  how: "mean" | "sum" = "mean",
): Float32Array {
  const out = new Float32Array(side === "query" ? m : weights.length / m);
  const share = how === "mean" ? 1 / positions.length : 1;
  for (const position of positions)
    for (let at = 0; at < out.length; at++)
      out[at] += share * weights[side === "query" ? position * m + at : at * m + position];
  return out;
}
