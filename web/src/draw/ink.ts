// Lines laid down as ink, on the processor: without a GPU many times as fast as WebGL or canvas strokes, and the same
// everywhere. Depth of ink adds up where lines cross, and alpha = 1 − e^(−depth): the same as laying one over the
// other. Where heads cross, their colours mix by depth, so that none hides another.
import type { Rgb } from "./colour";
import { makeKernel, MARGIN, STRIP, type Kernel } from "./kernel";

/** Lines of one colour and depth, from the left edge to the right one; row r is at r·row + lower on either. */
export interface Stroke {
  colour: Rgb;
  depth: number;
  lower: number;
  from: Uint32Array;
  to: Uint32Array;
}

/** And where in the kernel's memory its lines are. */
interface Laid extends Stroke {
  place: number;
}

/** Lines between two chances to stop. */
const SOME = 8192;
/** Among very many lines, those fainter than this are haze: drawn at half the size, for half of the work. */
export const CROWD = 20_000;
const HAZE = 0.02;
/** Alpha by 256ths of depth. */
const ALPHA = Uint8Array.from({ length: 1536 }, (_, at) => Math.round(255 * (1 - Math.exp(-(at + 0.5) / 256))));

/** A picture, made strip by strip, so that all that is written to stays in the cache. */
export class Ink {
  /** Where in the kernel's memory things are: depth of a strip, and of haze behind two strips; alphas; pixels; lines. */
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

  /** Makes the picture anew, from the left to the right; stops now and then. */
  *lay(strokes: Stroke[], row: number, thick: number): Generator<void, void> {
    const { kernel, width, height } = this;
    const count = strokes.reduce((sum, { from }) => sum + from.length, 0);
    const laid = this.load(strokes, count);
    const faint = ({ depth }: Stroke) => count > CROWD && depth < HAZE;
    const [clear, hazy] = [laid.filter((one) => !faint(one)), laid.filter(faint)];
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

  /** Some strokes in one strip. Haze is as wide as other lines, but on a picture of half the size: so half as deep. */
  private *strip(strokes: Laid[], left: number, row: number, thick: number, half: 1 | 2): Generator<void, void> {
    const [across, down, wet] = [this.width / half, this.height / half, half === 2 ? this.haze : this.wet];
    const wide = Math.min(STRIP, Math.ceil(across - left / half));
    let since = 0;
    for (const { colour, depth, lower, from, place } of strokes) {
      for (let start = 0; start < from.length; start += SOME) {
        const some = Math.min(SOME, from.length - start);
        this.kernel.lay(
          wet,
          place + 4 * start,
          place + 4 * (from.length + start),
          some,
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
        if ((since += some) < SOME) continue;
        yield;
        since = 0;
      }
    }
  }

  /** All lines into the kernel's memory. */
  private load(strokes: Stroke[], count: number): Laid[] {
    this.kernel.reserve(this.lines + 8 * count);
    const { buffer } = this.kernel.memory;
    new Uint8Array(buffer, this.alphas).set(ALPHA);
    new Uint8Array(buffer, this.wet, 2 * this.haze).fill(0); // of a picture that was given up
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
