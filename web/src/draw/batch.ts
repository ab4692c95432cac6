// How are lines grouped for drawing? In batches of one colour and opacity, strongest first, for canvas and SVG.
import type { Lines } from "../weights/lines";
import { tintOf, type Rgb } from "./colour";
import { LEVELS, makeKernel, type Kernel } from "./kernel";

export interface LineSet {
  lines: Lines;
  /** null for signed weights: blue above zero, orange below. */
  colour: Rgb | null;
}

export interface Batch {
  colour: Rgb;
  alpha: number;
  /** Place of the head among those shown, −½ to ½: lines of several heads are side by side. */
  lane: number;
  from: Uint32Array;
  to: Uint32Array;
}

/** The rows to draw, first to last; a line is drawn if one of its ends is among them. */
export interface Range {
  first: number;
  last: number;
}
const EVERY: Range = { first: 0, last: 0x7fffffff };

let shared: Kernel | undefined;

export function batches(sets: LineSet[], range = EVERY, kernel = (shared ??= makeKernel())): Batch[] {
  const most = Math.max(0, ...sets.map(({ lines }) => lines.count));
  const ends = 20 * most;
  const levels = ends + 4 * (2 * LEVELS + 1);
  kernel.reserve(levels + most);
  const { buffer } = kernel.memory;
  const words = (place: number, count: number) => new Uint32Array(buffer, 4 * place * most, count);
  const out: (Batch & { level: number })[] = [];
  let before: Lines | undefined;
  sets.forEach(({ lines, colour }, at) => {
    const { count, from, to, weight } = lines;
    const lane = (at + 0.5) / sets.length - 0.5;
    new Float32Array(buffer, 0, count).set(weight.subarray(0, count));
    // Complete heads share these two arrays.
    if (from !== before?.from) words(1, count).set(from.subarray(0, count));
    if (to !== before?.to) words(2, count).set(to.subarray(0, count));
    before = lines;
    kernel.sort(0, 4 * most, 8 * most, count, range.first, range.last, levels, ends, 12 * most, 16 * most);
    let start = 0;
    new Uint32Array(buffer, ends, 2 * LEVELS + 1).forEach((end, place) => {
      const level = Math.abs(place - LEVELS);
      if (end > start)
        out.push({
          colour: tintOf(colour, place - LEVELS),
          alpha: level / LEVELS,
          lane,
          level,
          from: words(3, count).slice(start, end),
          to: words(4, count).slice(start, end),
        });
      start = end;
    });
  });
  return out.sort((a, b) => b.level - a.level);
}
