// Paints batches of lines on a canvas: the strongest at once, the faint rest over the next frames.
import type { Batch } from "./batch";
import { depthOf, Ink } from "./ink";

/** Where lines run: from x0 to x1, row r at (r + ½)·row − top plus the head's lane, all in CSS pixels. */
export interface Place {
  x0: number;
  x1: number;
  row: number;
  top: number;
  width: number;
  height: number;
  thick: number;
  /** How far apart the first and the last head's lanes are. */
  spread: number;
}

/** Enough to tell heads apart, little enough that a line still ends at its token. */
export const spreadOf = (row: number, heads: number): number => Math.min(row * 0.6, heads * 2);

/** Lines in the first frame, and how long the following ones may take (ms). */
const FIRST = 4000;
const FRAME = 24;
/** More pixel steps than this, and a dense screen is painted at single density: haze needs no detail. */
const DENSE = 30_000_000;

export function sized(canvas: HTMLCanvasElement, width: number, height: number, ratio = window.devicePixelRatio || 1): CanvasRenderingContext2D {
  const [w, h] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
  }
  const context = canvas.getContext("2d") as CanvasRenderingContext2D;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

/** Only the lines of tokens in view: one that merely passes by tells nothing and hides the others. */
function inView(all: Batch[], { row, top, height }: Place): Batch[] {
  const [first, last] = [top / row - 1.5, (top + height) / row + 0.5];
  const seen = (at: number) => at >= first && at <= last;
  return all.map((batch) => {
    const from = new Uint32Array(batch.from.length);
    const to = new Uint32Array(batch.from.length);
    let count = 0;
    for (let at = 0; at < batch.from.length; at++) {
      if (!seen(batch.from[at]) && !seen(batch.to[at])) continue;
      from[count] = batch.from[at];
      to[count++] = batch.to[at];
    }
    return { ...batch, from: from.subarray(0, count), to: to.subarray(0, count) };
  });
}

export class Painter {
  private frame = 0;

  constructor(private readonly canvas: HTMLCanvasElement) {}

  stop(): void {
    cancelAnimationFrame(this.frame);
  }

  /** `done` is called when every line is on screen, with the share of their strength that they were drawn at. */
  paint(all: Batch[], place: Place, done: (strength: number) => void = () => {}): void {
    this.stop();
    const seen = inView(all, place);
    const count = seen.reduce((sum, batch) => sum + batch.from.length, 0);
    const wide = Math.max(1, place.x1 - place.x0);
    const screen = window.devicePixelRatio || 1;
    const ratio = count * wide * screen > DENSE ? Math.min(1, screen) : Math.min(2, screen);
    const context = sized(this.canvas, place.width, place.height, ratio);
    const ink = new Ink(Math.max(1, Math.round(wide * ratio)), Math.max(1, Math.round(place.height * ratio)));
    const thick = (count > 20_000 ? Math.min(1, place.thick) : place.thick) * ratio;
    const show = () => context.putImageData(ink.picture(), Math.round(place.x0 * ratio), 0);
    const [strong, faint] = split(seen, FIRST);
    const strength = strengthFor(seen, place, thick / ratio);
    const look = { ratio, thick, strength };
    const work = strokes(ink, faint, place, look);
    for (const _ of strokes(ink, strong, place, look));
    show();
    let shown = performance.now();
    const more = () => {
      const end = performance.now() + FRAME;
      let finished = false;
      while (!finished && performance.now() < end) finished = work.next().done ?? false;
      if (finished || performance.now() - shown > 200) {
        show();
        shown = performance.now();
      }
      if (finished) done(strength);
      else this.frame = requestAnimationFrame(more);
    };
    if (faint.length === 0) done(strength);
    else this.frame = requestAnimationFrame(more);
  }
}

/** The first so many lines, and the rest. Batches come strongest first. */
function split(all: Batch[], most: number): [Batch[], Batch[]] {
  let left = most;
  const at = all.findIndex((batch) => (left -= batch.from.length) < 0);
  return at < 0 ? [all, []] : [all.slice(0, Math.max(1, at)), all.slice(Math.max(1, at))];
}

interface Look {
  ratio: number;
  thick: number;
  strength: number;
}

/** Lines that would cover this much of the paper side by side still show a pattern; more is a blot. */
const FULLEST = 0.8;

/** 1 for most inputs; less where so many lines cross that they would be one solid block. */
export function strengthFor(all: Batch[], { x0, x1, row, top, height }: Place, thick: number): number {
  const wide = Math.max(1, x1 - x0);
  let ink = 0;
  for (const batch of all) {
    const cover = batch.alpha * thick;
    for (let at = 0; at < batch.from.length; at++) {
      const [a, b] = [batch.from[at] * row - top, batch.to[at] * row - top];
      const fall = Math.abs(b - a);
      const seen = fall > 1 ? Math.min(1, (Math.min(height, Math.max(a, b)) - Math.max(0, Math.min(a, b))) / fall) : 1;
      ink += cover * Math.max(0, seen) * Math.hypot(wide, fall);
    }
  }
  const rows = all.reduce((most, batch) => batch.from.reduce((last, at) => Math.max(last, at + 1), most), 1);
  return Math.min(1, (FULLEST * wide * Math.min(height, rows * row)) / Math.max(1, ink));
}

/** Lays lines colour by colour, pausing every few hundred. */
function* strokes(ink: Ink, all: Batch[], place: Place, { ratio, thick, strength }: Look): Generator<void, void> {
  const row = place.row * ratio;
  for (const batches of byColour(all).values()) {
    for (const batch of batches) {
      const lower = row / 2 + (batch.lane * place.spread - place.top) * ratio;
      const depth = depthOf(batch.alpha) * strength;
      for (let at = 0; at < batch.from.length; at++) {
        ink.line(batch.from[at] * row + lower, batch.to[at] * row + lower, depth, thick);
        if (at % 256 === 255) yield;
      }
    }
    ink.settle(batches[0].colour);
    yield;
  }
}

function byColour(all: Batch[]): Map<string, Batch[]> {
  const out = new Map<string, Batch[]>();
  for (const batch of all) out.set(batch.colour.join(), [...(out.get(batch.colour.join()) ?? []), batch]);
  return out;
}
