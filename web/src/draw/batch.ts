// Lines sorted into batches of one colour and one opacity, strongest first, for canvas and for SVG alike.
import type { Lines } from "../weights/lines";
import { NEGATIVE, opacity, POSITIVE, type Rgb } from "./colour";

export interface LineSet {
  lines: Lines;
  /** null: signed, blue above zero and orange below. */
  colour: Rgb | null;
}

export interface Batch {
  colour: Rgb;
  alpha: number;
  /** Place of its head among those shown, from −½ to ½: lines of several heads run side by side. */
  lane: number;
  from: Uint32Array;
  to: Uint32Array;
}

const LEVELS = 40;
/** Fainter than this changes no pixel. */
const FAINTEST = 0.006;

const LEAST = FAINTEST ** (4 / 3);

export function batches(sets: LineSet[]): Batch[] {
  const out: (Batch & { level: number })[] = [];
  sets.forEach((set, at) => out.push(...ofSet(set, (at + 0.5) / sets.length - 0.5)));
  return out.sort((a, b) => b.level - a.level);
}

function ofSet({ lines, colour }: LineSet, lane: number) {
  const { count, weight } = lines;
  const bucket = new Int8Array(count);
  const counts = new Uint32Array(2 * LEVELS + 1);
  for (let at = 0; at < count; at++) {
    const one = weight[at];
    if (one < LEAST && one > -LEAST) continue;
    const size = Math.round(opacity(one) * LEVELS) || 1;
    bucket[at] = one < 0 ? -size : size;
    counts[bucket[at] + LEVELS]++;
  }
  const ends = counts.map((_, place) => counts.subarray(0, place).reduce((sum, one) => sum + one, 0));
  const starts = ends.slice();
  const from = new Uint32Array(count);
  const to = new Uint32Array(count);
  for (let at = 0; at < count; at++) {
    if (bucket[at] === 0) continue;
    const place = ends[bucket[at] + LEVELS]++;
    from[place] = lines.from[at];
    to[place] = lines.to[at];
  }
  return [...starts.keys()].flatMap((place) => {
    const [start, end] = [starts[place], ends[place]];
    const size = Math.abs(place - LEVELS);
    const tint = colour ?? (place < LEVELS ? NEGATIVE : POSITIVE);
    return start < end ? [{ colour: tint, alpha: size / LEVELS, lane, level: size, from: from.subarray(start, end), to: to.subarray(start, end) }] : [];
  });
}
