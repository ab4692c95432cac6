// How does one head compute one row? Every step from query and keys to the softmax.
import type { Vectors } from "../source/wire";

export interface Trace {
  /** q·k of the query with every key (M). */
  dot: Float32Array;
  /** After scale, soft cap and bias; −∞ where the key is not seen (M). */
  logit: Float32Array;
  /** The softmax (M). */
  weight: Float32Array;
  seen: Uint8Array;
}

export function trace(vectors: Vectors, row: number, hidden: ReadonlySet<number>): Trace {
  const [m, width] = vectors.key.shape;
  const query = vectors.query.data.subarray(row * width, (row + 1) * width);
  const out = {
    dot: new Float32Array(m),
    logit: new Float32Array(m),
    weight: new Float32Array(m),
    seen: new Uint8Array(m),
  };
  for (let key = 0; key < m; key++) {
    let dot = 0;
    for (let at = 0; at < width; at++) dot += query[at] * vectors.key.data[key * width + at];
    out.dot[key] = dot;
    out.seen[key] = Number(sees(vectors, row, key) && !hidden.has(key));
    out.logit[key] = out.seen[key] ? logit(vectors, dot, row, key) : -Infinity;
  }
  softmax(out.logit, vectors.sink, out.weight);
  return out;
}

function sees(vectors: Vectors, row: number, key: number): boolean {
  const n = vectors.query.shape[0];
  const m = vectors.key.shape[0];
  if (vectors.mask === "causal") return key <= row + (m - n);
  if (vectors.mask === "given" && vectors.seen) {
    const rows = vectors.seen.shape[0];
    return vectors.seen.data[(rows === 1 ? 0 : row) * m + key] !== 0;
  }
  return true;
}

function logit(vectors: Vectors, dot: number, row: number, key: number): number {
  const m = vectors.key.shape[0];
  let value = dot * vectors.scale;
  if (vectors.softcap) value = vectors.softcap * Math.tanh(value / vectors.softcap);
  if (vectors.added) value += vectors.added.data[(vectors.added.shape[0] === 1 ? 0 : row) * m + key];
  return value;
}

function softmax(logits: Float32Array, sink: number | null, out: Float32Array): void {
  let top = sink ?? -Infinity;
  for (const value of logits) top = Math.max(top, value);
  if (top === -Infinity) return;
  let sum = sink === null ? 0 : Math.exp(sink - top);
  for (const value of logits) sum += Math.exp(value - top);
  logits.forEach((value, key) => (out[key] = Math.exp(value - top) / sum));
}

/**
 * Sort neurons by how much they raise the attended keys above the others:
 * Σ_j a_ij q_d k_jd − mean_j q_d k_jd, largest first; for one picked key, q_d k_jd.
 */
export function byContribution(vectors: Vectors, row: number, steps: Trace, key: number | null): Uint32Array {
  const [m, width] = vectors.key.shape;
  const score = new Float32Array(width);
  let count = 0;
  for (let at = 0; at < m; at++) count += steps.seen[at];
  for (let at = 0; at < m; at++) {
    const push = key === null ? steps.weight[at] - steps.seen[at] / Math.max(1, count) : Number(at === key);
    if (push === 0) continue;
    for (let d = 0; d < width; d++) {
      score[d] += push * vectors.query.data[row * width + d] * vectors.key.data[at * width + d];
    }
  }
  return Uint32Array.from({ length: width }, (_, d) => d).sort((a, b) => score[b] - score[a]);
}
