// What are queries and keys along the few directions of a head?
import type { HeadDirections, Vectors } from "../source/wire";

/** Coordinates along all directions: q·k = Σ a b + constant. */
export interface Turned {
  width: number;
  /** a of each query (N, D). */
  a: Float32Array;
  /** b of each key (M, D), about the mean key. */
  b: Float32Array;
}

const turned = (vectors: Float32Array, width: number, by: Float32Array, less: Float32Array | null): Float32Array => {
  const out = new Float32Array(vectors.length);
  const sum = new Float64Array(width);
  for (let row = 0; row < vectors.length / width; row++) {
    sum.fill(0);
    for (let at = 0; at < width; at++) {
      const value = vectors[row * width + at] - (less ? less[at] : 0);
      for (let d = 0; d < width; d++) sum[d] += value * by[at * width + d];
    }
    out.set(sum, row * width);
  }
  return out;
};

/** Turn the queries and keys of an input to the directions of their head. */
export function turn(vectors: Vectors, directions: HeadDirections): Turned {
  const width = vectors.key.shape[1];
  return {
    width,
    a: turned(vectors.query.data, width, directions.query.data, null),
    b: turned(vectors.key.data, width, directions.key.data, directions.mean_key.data),
  };
}

/** Get the first directions of each vector, and a last column of zeros for the rest. */
export function firstOf(all: Float32Array, width: number, count: number): Float32Array {
  const out = new Float32Array((all.length / width) * (count + 1));
  for (let row = 0; row < all.length / width; row++)
    out.set(all.subarray(row * width, row * width + count), row * (count + 1));
  return out;
}
