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

function level(weight: number): number {
  const alpha = opacity(weight);
  return alpha < FAINTEST ? 0 : Math.max(1, Math.round(alpha * LEVELS));
}

export function batches(sets: LineSet[]): Batch[] {
  const out: (Batch & { level: number })[] = [];
  sets.forEach((set, at) => out.push(...ofSet(set, (at + 0.5) / sets.length - 0.5)));
  return out.sort((a, b) => b.level - a.level);
}

function ofSet({ lines, colour }: LineSet, lane: number) {
  const bucket = new Int8Array(lines.count);
  const counts = new Uint32Array(2 * LEVELS + 1);
  for (let at = 0; at < lines.count; at++) {
    const weight = lines.weight[at];
    const size = level(weight);
    bucket[at] = weight < 0 ? -size : size;
    counts[bucket[at] + LEVELS]++;
  }
  const made = new Map<number, Batch & { level: number; filled: number }>();
  for (let at = 0; at < lines.count; at++) {
    const place = bucket[at];
    if (place === 0) continue;
    let batch = made.get(place);
    if (!batch) {
      const count = counts[place + LEVELS];
      const tint = colour ?? (place < 0 ? NEGATIVE : POSITIVE);
      const size = Math.abs(place);
      batch = { colour: tint, alpha: size / LEVELS, lane, level: size, filled: 0, from: new Uint32Array(count), to: new Uint32Array(count) };
      made.set(place, batch);
    }
    batch.from[batch.filled] = lines.from[at];
    batch.to[batch.filled] = lines.to[at];
    batch.filled++;
  }
  return [...made.values()];
}
