// Which tokens does one token look at, or which look at it?
import { mostLeftOut, weightAt, type HeadRows } from "./rows";

export type Side = "query" | "key";

/** Get the weights of a token with every token of the other side. */
export function partners(head: HeadRows, side: Side, at: number): Float32Array {
  if (side === "key") return Float32Array.from({ length: head.n }, (_, row) => weightAt(head, row, at) ?? 0);
  const out = new Float32Array(head.m);
  for (let entry = at * head.k; entry < (at + 1) * head.k; entry++) {
    if (head.weight[entry] !== 0) out[head.index[entry]] = head.weight[entry];
  }
  return out;
}

/** Get the weights of several tokens with every token of the other side, summed or averaged. */
export function together(head: HeadRows, side: Side, places: readonly number[], how: "mean" | "sum"): Float32Array {
  const out = new Float32Array(side === "query" ? head.m : head.n);
  const share = how === "mean" ? 1 / Math.max(1, places.length) : 1;
  for (const place of places) partners(head, side, place).forEach((weight, at) => (out[at] += weight * share));
  return out;
}

export interface Partner {
  at: number;
  /** Mean over the picked heads. */
  mean: number;
  strongest: number;
  /** Place of the head with the strongest weight among the picked heads. */
  head: number;
}

/** List the strongest partners over some heads, largest mean first. */
export function ranked(byHead: Float32Array[], most: number): Partner[] {
  const length = byHead[0]?.length ?? 0;
  const all: Partner[] = [];
  for (let at = 0; at < length; at++) {
    let [sum, strongest, head] = [0, 0, 0];
    byHead.forEach((weights, place) => {
      sum += weights[at];
      if (Math.abs(weights[at]) > Math.abs(strongest)) [strongest, head] = [weights[at], place];
    });
    if (strongest !== 0) all.push({ at, mean: sum / byHead.length, strongest, head });
  }
  return all.sort((a, b) => Math.abs(b.mean) - Math.abs(a.mean)).slice(0, most);
}

/** Write a weight with three decimals, and with a sign if `signed`. */
export function number(weight: number, signed = false): string {
  const size = Math.abs(weight);
  if (size > 0 && size < 0.0005) return "<0.001";
  return `${weight < 0 ? "−" : signed && weight > 0 ? "+" : ""}${size.toFixed(3)}`;
}

/** Write one weight; of one that was not sent, how large it can be. */
export function weightText(head: HeadRows, row: number, column: number, signed = false): string {
  const weight = weightAt(head, row, column);
  return weight === null ? `at most ${number(mostLeftOut(head, row))}` : number(weight, signed);
}
