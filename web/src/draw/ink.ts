// How are very many lines drawn on the processor? As ink: without a GPU much faster than WebGL or canvas strokes, and
// the same everywhere. Where lines cross, depths add up; alpha = 1 − e^(−depth) is the same as drawing one over the
// other. Where heads cross, their colours mix by depth, so that none hides another.
import type { Rgb } from "./colour";
import { makeKernel, MARGIN, STRIP, type Kernel } from "./kernel";

/** Lines of one colour and depth, from left to right; row r is at r·row + lower on both sides. */
export interface Stroke {
  colour: Rgb;
  depth: number;
  lower: number;
  from: Uint32Array;
  to: Uint32Array;
}

/** A stroke and the place of its lines in the kernel's memory. */
interface Laid extends Stroke {
  place: number;
}

/** Number of lines between two points where the work may stop. */
const SOME = 8192;
/** Of very many lines, fainter ones are haze: drawn at half the size, for half of the work. */
export const CROWD = 20_000;
const HAZE = 0.02;
/** Alpha for each 256th of depth. */
const ALPHA = Uint8Array.from({ length: 1536 }, (_, at) => Math.round(255 * (1 - Math.exp(-(at + 0.5) / 256))));

/** A picture, drawn strip by strip, so that the memory in use stays in the cache. */
export class Ink {
  /** Places in the kernel's memory: depth of a strip, and of haze behind two strips; alphas; pixels; lines. */
  private readonly wet = 0;
  private readonly haze: number;
  private readonly alphas: number;
  private readonly pixels: number;
  private readonly lines: number;

  constructor(
    readonly width: number,
    readonly height: number,
    private readonly kernel: Kernel = makeKernel(),
  ) {
    this.haze = 16 * STRIP * (height + 2 * MARGIN);
    this.alphas = 2 * this.haze;
    this.pixels = this.alphas + ALPHA.length;
    this.lines = this.pixels + 4 * width * height;
  }

  get picture(): ImageData {
    return new ImageData(
      new Uint8ClampedArray(this.kernel.memory.buffer, this.pixels, 4 * this.width * this.height),
      this.width,
      this.height,
    );
  }

  /** Draw the picture again, from left to right; yields regularly. */
  *lay(strokes: Stroke[], row: number, thick: number): Generator<void, void> {
    const { kernel, width, height } = this;
    const count = strokes.reduce((sum, { from }) => sum + from.length, 0);
    const laid = this.load(strokes, count);
    const faint = ({ depth }: Stroke) => count > CROWD && depth < HAZE;
    const [clear, hazy] = [laid.filter((stroke) => !faint(stroke)), laid.filter(faint)];
    for (let left = 0; left < width; left += STRIP) {
      if (left % (2 * STRIP) === 0 && hazy.length > 0) {
        this.dry();
        yield* this.strip(hazy, left, row, thick, 2);
      }
      yield* this.strip(clear, left, row, thick, 1);
      const behind = this.haze + 16 * ((left / 2) % STRIP);
      kernel.develop(
        this.wet,
        behind,
        height,
        Math.min(STRIP, width - left),
        this.pixels + 4 * left,
        4 * width,
        this.alphas,
      );
    }
  }

  /** Draw strokes in one strip. Haze is as wide as other lines on a picture of half the size, so it is half as deep. */
  private *strip(strokes: Laid[], left: number, row: number, thick: number, half: 1 | 2): Generator<void, void> {
    const [across, down, wet] = [this.width / half, this.height / half, half === 2 ? this.haze : this.wet];
    const wide = Math.min(STRIP, Math.ceil(across - left / half));
    let since = 0;
    for (const { colour, depth, lower, from, place } of strokes) {
      for (let start = 0; start < from.length; start += SOME) {
        const count = Math.min(SOME, from.length - start);
        this.kernel.lay(
          wet,
          place + 4 * start,
          place + 4 * (from.length + start),
          count,
          row / half,
          lower / half,
          thick,
          colour[0],
          colour[1],
          colour[2],
          depth / half,
          left / half,
          wide,
          across,
          down,
        );
        if ((since += count) < SOME) continue;
        yield;
        since = 0;
      }
    }
  }

  /** Copy all lines into the kernel's memory. */
  private load(strokes: Stroke[], count: number): Laid[] {
    this.kernel.reserve(this.lines + 8 * count);
    const { buffer } = this.kernel.memory;
    new Uint8Array(buffer, this.alphas).set(ALPHA);
    new Uint8Array(buffer, this.wet, 2 * this.haze).fill(0); // left by a picture that was stopped
    let place = this.lines;
    return strokes.map((stroke) => {
      const { from, to } = stroke;
      new Uint32Array(buffer, place).set(from);
      new Uint32Array(buffer, place + 4 * from.length).set(to);
      place += 8 * from.length;
      return { ...stroke, place: place - 8 * from.length };
    });
  }

  private dry(): void {
    new Uint8Array(this.kernel.memory.buffer, this.haze, this.haze).fill(0);
  }
}

export const depthOf = (alpha: number): number => -Math.log(1 - Math.min(0.985, alpha));
