// How is the overview of a head made small, and which heads are in view?

/** Pixels along a side of a small overview. */
export const SMALL = 128;

/**
 * Make colour steps (high × wide) a picture of 128 × 128; the strongest of the cells in a pixel is shown.
 * `zero` is the step of nothing; where numbers have signs it is in the middle.
 */
export function shrunk(steps: Uint8Array, high: number, wide: number, zero = 0): Uint8Array {
  const longest = Math.max(high, wide);
  const out = new Uint8Array(SMALL * SMALL).fill(zero);
  for (let row = 0; row < high; row++) {
    const y = Math.floor((row * SMALL) / longest);
    for (let column = 0; column < wide; column++) {
      const at = y * SMALL + Math.floor((column * SMALL) / longest);
      const step = steps[row * wide + column];
      if (Math.abs(step - zero) > Math.abs(out[at] - zero)) out[at] = step;
    }
  }
  return out;
}

/** List the rows of a grid that are in view, and one more on each side. */
export function thumbsIn(rows: number, top: number, height: number, cell: number): number[] {
  const first = Math.max(0, Math.floor(top / cell) - 1);
  const last = Math.min(rows - 1, Math.ceil((top + height) / cell));
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, at) => first + at);
}
