// How are lines painted on a canvas? A few at once; very many in slices, the strongest first.
import { batches, type Batch, type LineSet, type Range } from "./batch";
import { CROWD, depthOf, Ink, type Stroke } from "./ink";
import { AFTER_FRAME, AT_ONCE, Slices } from "./slices";

/** The place of lines: from x0 to x1, row r at (r + ½)·row − top plus the head's lane, in CSS pixels. */
export interface Place {
  x0: number;
  x1: number;
  row: number;
  /** Number of rows, in view or not. */
  rows: number;
  top: number;
  width: number;
  height: number;
  thick: number;
  /** Distance between the lanes of the first and the last head. */
  spread: number;
}

/** Get the distance of lanes: enough to distinguish heads, but each line still ends at its token. */
export const spreadOf = (row: number, heads: number): number => Math.min(row * 0.6, heads * 2);

/** Number of lines drawn at once. Of more lines, this many of the strongest are shown before the others. */
const FEW = 4000;
/** With more pixel steps than this, a dense screen is painted at single density: haze needs no detail. */
const DENSE = 30_000_000;

export function sized(
  canvas: HTMLCanvasElement,
  width: number,
  height: number,
  ratio = window.devicePixelRatio || 1,
): CanvasRenderingContext2D {
  const [w, h] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
  }
  // The processor makes the pixels, so a canvas on the GPU would only wait for them.
  const context = canvas.getContext("2d", { willReadFrequently: true }) as CanvasRenderingContext2D;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

/** Get the rows in view: lines that only pass through the view say nothing and hide others. */
const inView = ({ row, top, height }: Place): Range => ({
  first: Math.ceil(top / row - 1.5),
  last: Math.floor((top + height) / row + 0.5),
});

/** Reports while lines are drawn: when the strongest are on screen, and when all are. */
export interface Told {
  begun?: () => void;
  /** `strength`: the strength at which lines were drawn, 0 to 1. */
  done?: (strength: number) => void;
}

export class Painter {
  private readonly slices = new Slices();
  private ink: Ink | undefined;

  constructor(private readonly canvas: HTMLCanvasElement) {}

  stop(): void {
    this.slices.stop();
  }

  paint(sets: LineSet[], place: Place, { begun, done }: Told = {}): void {
    this.stop();
    const seen = batches(sets, inView(place));
    const count = seen.reduce((sum, batch) => sum + batch.from.length, 0);
    const wide = Math.max(1, place.x1 - place.x0);
    const screen = window.devicePixelRatio || 1;
    const ratio = count * wide * screen > DENSE ? Math.min(1, screen) : Math.min(2, screen);
    const context = sized(this.canvas, place.width, place.height, ratio);
    const high = Math.min(place.height, place.rows * place.row - place.top);
    const ink = this.inkOf(Math.max(1, Math.round(wide * ratio)), Math.max(1, Math.round(high * ratio)));
    const show = () => context.putImageData(ink.picture, Math.round(place.x0 * ratio), 0);
    const thick = (count > CROWD ? Math.min(1, place.thick) : place.thick) * ratio;
    const strength = strengthFor(seen, place, thick / ratio);
    const row = place.row * ratio;
    const strokes = seen.map(({ colour, alpha, lane, from, to }): Stroke => {
      const lower = row / 2 + (lane * place.spread - place.top) * ratio;
      return { colour, depth: depthOf(alpha) * strength, lower, from, to };
    });
    const whole = () => {
      show();
      done?.(strength);
    };
    if (count > FEW) {
      for (const _ of ink.lay(strongest(strokes, FEW), row, thick));
      show();
      begun?.();
    }
    this.slices.run(ink.lay(strokes, row, thick), whole, count > FEW ? AFTER_FRAME : AT_ONCE);
  }

  private inkOf(width: number, height: number): Ink {
    if (this.ink?.width !== width || this.ink.height !== height) this.ink = new Ink(width, height);
    return this.ink;
  }
}

/** Get the first batches with at most this many lines, but at least one; batches are sorted, strongest first. */
function strongest(strokes: Stroke[], most: number): Stroke[] {
  let left = most;
  const at = strokes.findIndex((stroke) => (left -= stroke.from.length) < 0);
  return at < 0 ? strokes : strokes.slice(0, Math.max(1, at));
}

/** Lines that cover up to this share of the paper still show a pattern; more would be a solid block. */
const FULLEST = 0.8;
/** About how many lines are looked at for that, and of how many of each batch at least. */
const SAMPLE = 2048;
const LEAST = 8;

/** Get the strength of lines: 1, or less where lines would be a solid block; estimated from a sample if very many. */
export function strengthFor(all: Batch[], { x0, x1, row, rows, top, height }: Place, thick: number): number {
  const wide = Math.max(1, x1 - x0);
  const few = Math.max(LEAST, SAMPLE / all.length);
  let ink = 0;
  for (const { alpha, from, to } of all) {
    const step = Math.max(1, Math.floor(from.length / few));
    for (let at = 0; at < from.length; at += step) {
      const [a, b] = [from[at] * row - top, to[at] * row - top];
      const fall = Math.abs(b - a);
      const seen = fall > 1 ? Math.min(1, (Math.min(height, Math.max(a, b)) - Math.max(0, Math.min(a, b))) / fall) : 1;
      ink += step * alpha * thick * Math.max(0, seen) * Math.sqrt(wide * wide + fall * fall);
    }
  }
  return Math.min(1, (FULLEST * wide * Math.min(height, rows * row)) / Math.max(1, ink));
}
