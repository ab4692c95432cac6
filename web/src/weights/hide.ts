// What do a head's rows become when tokens are hidden? A softmax over the visible tokens.
import type { HeadRows } from "./rows";

/**
 * Hide tokens: w_ij / (Σ over visible j of w_ij + sink_i). Hidden rows become zero.
 *
 * It always starts from the original rows, so the order of hiding does not matter, and showing
 * all tokens again restores the original rows.
 */
export function hide(head: HeadRows, queries: ReadonlySet<number>, keys: ReadonlySet<number>): HeadRows {
  if (queries.size === 0 && keys.size === 0) return head;
  const { n, k } = head;
  const gone = flags(head.m, keys);
  const weight = new Float32Array(head.weight.length);
  const rest = new Float32Array(n);
  const sink = new Float32Array(n);
  for (let row = 0; row < n; row++) {
    if (queries.has(row)) continue;
    let left = 0;
    for (let at = row * k; at < (row + 1) * k; at++) {
      if (!gone[head.index[at]]) left += head.weight[at];
    }
    // In rows with only the strongest keys, all keys left out are taken as visible.
    const whole = left + head.rest[row] + head.sink[row];
    if (whole <= 0) continue;
    for (let at = row * k; at < (row + 1) * k; at++) {
      if (!gone[head.index[at]]) weight[at] = head.weight[at] / whole;
    }
    rest[row] = head.rest[row] / whole;
    sink[row] = head.sink[row] / whole;
  }
  return { ...head, weight, rest, sink };
}

/** Hide tokens of shares that were computed without the hidden keys: they are left out, nothing is scaled. */
export function blank(head: HeadRows, queries: ReadonlySet<number>, keys: ReadonlySet<number>): HeadRows {
  if (queries.size === 0 && keys.size === 0) return head;
  const gone = flags(head.m, keys);
  const weight = head.weight.map((value, at) =>
    gone[head.index[at]] || queries.has(Math.floor(at / head.k)) ? 0 : value,
  );
  return { ...head, weight, rest: head.rest.map((rest, row) => (queries.has(row) ? 0 : rest)) };
}

export function flags(length: number, chosen: ReadonlySet<number>): Uint8Array {
  const out = new Uint8Array(length);
  for (const at of chosen) if (at < length) out[at] = 1;
  return out;
}

/** Multiply weights by the length of each key's value vector; each row keeps its sum. */
export function byNorm(head: HeadRows, norms: Float32Array): HeadRows {
  const { n, k } = head;
  const weight = new Float32Array(head.weight.length);
  for (let row = 0; row < n; row++) {
    let before = 0;
    let after = 0;
    for (let at = row * k; at < (row + 1) * k; at++) {
      before += head.weight[at];
      after += head.weight[at] * norms[head.index[at]];
    }
    if (after <= 0) continue;
    for (let at = row * k; at < (row + 1) * k; at++) {
      weight[at] = (head.weight[at] * norms[head.index[at]] * before) / after;
    }
  }
  return { ...head, weight };
}

export function rowNorms(vectors: Float32Array, width: number): Float32Array {
  const out = new Float32Array(vectors.length / width);
  for (let row = 0; row < out.length; row++) {
    let sum = 0;
    for (let at = row * width; at < (row + 1) * width; at++) sum += vectors[at] ** 2;
    out[row] = Math.sqrt(sum);
  }
  return out;
}
