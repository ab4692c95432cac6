// How do numbers travel in two bytes? As square roots in steps of the largest of them, with signs or without.
import { SIGNED_UNIT, UNIT } from "./wire";

export type Roots = Uint16Array | Int16Array;

/** Get the root of the largest number: 65535, or 32767 where there are signs. */
export const wholeOf = (roots: Roots): number => (roots instanceof Int16Array ? SIGNED_UNIT : UNIT);

/** Get the factor that makes root · |root| a number, of the largest number. */
export const factorFor = (roots: Roots, largest: number): number => largest / wholeOf(roots) ** 2;

/** Read one number of roots; `factor` is that of `factorFor`. */
export const fromRoot = (root: number, factor: number): number => root * Math.abs(root) * factor;
