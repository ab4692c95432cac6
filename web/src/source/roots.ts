// How do numbers travel in two bytes? As square roots in steps of the largest of them, with signs or without.
import { SIGNED_UNIT, UNIT } from "./wire";

export type Roots = Uint16Array | Int16Array;

/** Get the root of the largest number: 65535, or 32767 where there are signs. */
export const wholeOf = (roots: Roots): number => (roots instanceof Int16Array ? SIGNED_UNIT : UNIT);

/** Get the factor that makes root · |root| a number, of the largest number. */
export const factorFor = (roots: Roots, largest: number): number => largest / wholeOf(roots) ** 2;

/** Read one number of roots; `factor` is that of `factorFor`. */
export const fromRoot = (root: number, factor: number): number => root * Math.abs(root) * factor;

/** Read the numbers of some rows; `largest` are those of each row, or 1. A loop for each type: several times as fast. */
export function fromRoots(roots: Roots, rows: number, largest?: Float32Array): Float32Array {
  const out = new Float32Array(roots.length);
  const wide = roots.length / rows;
  for (let row = 0; row < rows; row++) {
    const factor = factorFor(roots, largest ? largest[row] : 1);
    if (roots instanceof Int16Array) signed(roots, out, row * wide, (row + 1) * wide, factor);
    else unsigned(roots, out, row * wide, (row + 1) * wide, factor);
  }
  return out;
}

function signed(roots: Int16Array, out: Float32Array, start: number, end: number, factor: number): void {
  for (let at = start; at < end; at++) out[at] = fromRoot(roots[at], factor);
}

function unsigned(roots: Uint16Array, out: Float32Array, start: number, end: number, factor: number): void {
  for (let at = start; at < end; at++) out[at] = roots[at] * roots[at] * factor;
}
