// Which point is under the cursor? Points are sorted into squares, so that only a few are compared.
import type { Flat } from "./camera";

export interface Grid {
  flat: Flat;
  /** Squares along one side. */
  side: number;
  /** Start of each square's points in `order`, and the end (squares + 1). */
  start: Uint32Array;
  order: Uint32Array;
}

const PER_SQUARE = 4;

export function gridOf(flat: Flat): Grid {
  const count = flat.x.length;
  const side = Math.max(1, Math.min(128, Math.ceil(Math.sqrt(count / PER_SQUARE))));
  const start = new Uint32Array(side * side + 1);
  const square = new Uint32Array(count);
  for (let at = 0; at < count; at++) {
    square[at] = along(flat.y[at], side) * side + along(flat.x[at], side);
    start[square[at] + 1]++;
  }
  for (let at = 1; at < start.length; at++) start[at] += start[at - 1];
  const next = start.slice();
  const order = new Uint32Array(count);
  for (let at = 0; at < count; at++) order[next[square[at]]++] = at;
  return { flat, side, start, order };
}

const along = (value: number, side: number): number => Math.min(side - 1, Math.max(0, Math.floor(value * side)));

/** Get the nearest point within `reach` of (x, y), or −1; of two equally near, the one in front. */
export function nearest(grid: Grid, x: number, y: number, reach: number): number {
  const { flat, side } = grid;
  let best = -1;
  let least = reach * reach;
  for (let row = along(y - reach, side); row <= along(y + reach, side); row++) {
    for (let column = along(x - reach, side); column <= along(x + reach, side); column++) {
      const square = row * side + column;
      for (let place = grid.start[square]; place < grid.start[square + 1]; place++) {
        const at = grid.order[place];
        const away = (flat.x[at] - x) ** 2 + (flat.y[at] - y) ** 2;
        if (away < least || (away === least && best >= 0 && flat.near[at] > flat.near[best])) {
          least = away;
          best = at;
        }
      }
    }
  }
  return best;
}
