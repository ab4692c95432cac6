// What a head's rows become when tokens are hidden: a softmax over what is left.
import type { HeadRows } from "./rows";

/**
 * w_ij / (Σ over visible j of w_ij + sink_i). Hidden rows become zero.
 *
 * Hiding always starts from the untouched rows, so the order in which tokens were hidden
 * cannot matter, and showing them all again gives back the start.
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
    // Rows cut to their strongest keys: the mass left out is taken to be all visible.
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

export function flags(length: number, chosen: ReadonlySet<number>): Uint8Array {
  const out = new Uint8Array(length);
  for (const at of chosen) if (at < length) out[at] = 1;
  return out;
}

/** Weights times the length of the value each key moves, every row scaled back to its own sum. */
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
