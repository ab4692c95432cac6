// Paints batches of lines on a canvas, strongest first, a bounded number a frame, so that nothing ever blocks.
import type { Batch } from "./batch";

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

const FIRST = 6000;
const CHUNK = 400;

export function sized(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D {
  const ratio = window.devicePixelRatio || 1;
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

export class Painter {
  private frame = 0;

  constructor(private readonly canvas: HTMLCanvasElement) {}

  stop(): void {
    cancelAnimationFrame(this.frame);
  }

  /** Draws at once what fits a frame; the faint rest follows. `done` is called when all is on screen. */
  paint(all: Batch[], place: Place, done: () => void = () => {}): void {
    this.stop();
    const context = sized(this.canvas, place.width, place.height);
    let batch = 0;
    let line = 0;
    let budget = FIRST;
    let before = performance.now();
    const some = () => {
      let left = budget;
      while (batch < all.length && left > 0) {
        const end = Math.min(all[batch].from.length, line + CHUNK);
        left -= stroke(context, all[batch], line, end, place);
        line = end;
        if (line === all[batch].from.length) [batch, line] = [batch + 1, 0];
      }
      if (batch === all.length) return done();
      this.frame = requestAnimationFrame((now) => {
        // Frames that come late say that the last helping was too large.
        budget = now - before > 40 ? Math.max(1500, budget / 2) : Math.min(20_000, budget * 1.5);
        before = now;
        some();
      });
    };
    some();
  }
}

/** One path of a few hundred lines; returns how many of them were in sight. */
function stroke(context: CanvasRenderingContext2D, batch: Batch, start: number, end: number, place: Place): number {
  const { x0, x1, row, height } = place;
  const top = place.top - batch.lane * place.spread;
  context.globalAlpha = batch.alpha;
  context.strokeStyle = batch.colour;
  context.lineWidth = place.thick;
  context.beginPath();
  let count = 0;
  for (let at = start; at < end; at++) {
    const y0 = (batch.from[at] + 0.5) * row - top;
    const y1 = (batch.to[at] + 0.5) * row - top;
    if ((y0 < 0 && y1 < 0) || (y0 > height && y1 > height)) continue;
    context.moveTo(x0, y0);
    context.lineTo(x1, y1);
    count++;
  }
  if (count > 0) context.stroke();
  return count;
}
