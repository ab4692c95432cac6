// Lines laid down as ink, on the processor: without a GPU many times as fast as WebGL or canvas strokes, and the same
// everywhere. Depth of ink adds up where lines cross, and alpha = 1 − e^(−depth): the same as laying one over the
// other. Where heads cross, their colours mix by depth, so that none hides another.
import type { Rgb } from "./colour";

/** Lines of one colour and depth, from the left edge to the right one; row r is at r·row + lower on either. */
export interface Stroke {
  colour: Rgb;
  depth: number;
  lower: number;
  from: Uint32Array;
  to: Uint32Array;
}

/** Columns that are finished together, so that all that is written to stays in the cache; a power of two. */
const STRIP = 64;
/** Rows above and below the picture into which a line may run over, so that nothing is checked on the way. */
const MARGIN = 40;
const THICKEST = 36;
/** Lines between two chances to stop. */
const SOME = 8192;
/** Among very many lines, those fainter than this are haze: at half the size in both directions, for a quarter of the work. */
const CROWD = 20_000;
const HAZE = 0.02;
/** Depth 1 in whole numbers, and one row: the inner loop runs in integers, several times as fast as in floats. */
const UNIT = 1 << 12;
const ROW = 1 << 16;

export class Ink {
  readonly picture: ImageData;
  private readonly pixels: Uint32Array;
  /** Of many lines: depth in one strip, a plane a colour; and red, green, blue and depth of haze behind two strips. */
  private wet = new Int32Array(0);
  private haze = new Int32Array(0);
  /** Of few lines: red, green and blue times depth, and depth, of the whole picture. */
  private mixed = new Float32Array(0);
  /** The part of a line that is in the picture, as `clip` found it: columns, upper edge at the first, fall, height. */
  private first = 0;
  private last = 0;
  private top = 0;
  private slope = 0;
  private tall = 0;

  constructor(
    readonly width: number,
    readonly height: number,
  ) {
    this.picture = new ImageData(width, height);
    this.pixels = new Uint32Array(this.picture.data.buffer);
  }

  /** Makes the picture anew of a few thousand lines, at once. */
  few(strokes: Stroke[], row: number, thick: number): void {
    const { width, pixels } = this;
    if (this.mixed.length === 0) this.mixed = new Float32Array(4 * width * (this.height + 2 * MARGIN));
    else this.mixed.fill(0);
    for (const stroke of strokes) this.mix(stroke, row, thick);
    const { mixed } = this;
    for (let at = 0, place = 4 * MARGIN * width; at < pixels.length; at++, place += 4) {
      const depth = mixed[place + 3];
      pixels[at] = depth === 0 ? 0 : pixel(mixed[place], mixed[place + 1], mixed[place + 2], depth, depth);
    }
  }

  private mix({ colour: [red, green, blue], depth, lower, from, to }: Stroke, row: number, thick: number): void {
    const { width, mixed } = this;
    for (let at = 0; at < from.length; at++) {
      if (!this.clip(from[at] * row + lower, to[at] * row + lower, thick, 0, width, width, this.height)) continue;
      const { last, slope, tall } = this;
      let { top } = this;
      for (let x = this.first; x < last; x++, top += slope) {
        const line = top | 0;
        let place = 4 * (line * width + x);
        let rest = tall;
        for (let part = Math.min(line + 1 - top, tall); rest > 1e-3; part = Math.min(1, rest)) {
          const deep = depth * part;
          mixed[place] += deep * red;
          mixed[place + 1] += deep * green;
          mixed[place + 2] += deep * blue;
          mixed[place + 3] += deep;
          rest -= part;
          place += 4 * width;
        }
      }
    }
  }

  /** Makes the picture anew of any number of lines, strip by strip from the left; stops now and then. */
  *many(strokes: Stroke[], row: number, thick: number): Generator<void, void> {
    const crowded = strokes.reduce((sum, { from }) => sum + from.length, 0) > CROWD;
    const colours = byColour(strokes);
    const faint = colours.map((mine) => (crowded ? mine.filter(({ depth }) => depth < HAZE) : []).map(halved));
    const clear = crowded ? colours.map((mine) => mine.filter(({ depth }) => depth >= HAZE)) : colours;
    const rgb = colours.map(([{ colour }]) => colour);
    const size = STRIP * (this.height + 2 * MARGIN);
    if (this.wet.length < colours.length * size) this.wet = new Int32Array(colours.length * size);
    if (this.haze.length < 4 * size) this.haze = new Int32Array(4 * size);
    if (!crowded) this.haze.fill(0);
    for (let left = 0; left < this.width; left += STRIP) {
      if (crowded && left % (2 * STRIP) === 0) {
        yield* this.strip(this.wet, size, faint, row / 2, thick, left / 2, this.width / 2, this.height / 2);
        this.blur(rgb, size);
      }
      yield* this.strip(this.wet, size, clear, row, thick, left, this.width, this.height);
      this.develop(rgb, size, left);
    }
  }

  private *strip(wet: Int32Array, size: number, colours: Stroke[][], row: number, thick: number, left: number, width: number, height: number): Generator<void, void> {
    let laid = 0;
    wet.fill(0, 0, colours.length * size);
    for (const [plane, mine] of colours.entries()) {
      const own = wet.subarray(plane * size, (plane + 1) * size);
      for (const stroke of mine) {
        for (let at = 0; at < stroke.from.length; at += SOME) {
          const end = Math.min(stroke.from.length, at + SOME);
          this.lay(own, stroke, at, end, row, thick, left, width, height);
          laid += end - at;
          if (laid < SOME) continue;
          yield;
          laid = 0;
        }
      }
    }
  }

  private lay(wet: Int32Array, { depth, lower, from, to }: Stroke, start: number, end: number, row: number, thick: number, left: number, width: number, height: number): void {
    const wide = Math.min(STRIP, Math.ceil(width - left));
    for (let at = start; at < end; at++) {
      if (!this.clip(from[at] * row + lower, to[at] * row + lower, thick, left, wide, width, height)) continue;
      const { first, last, tall } = this;
      // Side by side as many hairs as fill it, each shared by the two pixels it lies between.
      const hairs = Math.max(1, Math.round(tall - 0.25));
      const deep = Math.round((depth * tall * UNIT) / hairs);
      const step = (this.slope * ROW) | 0;
      for (let hair = 0; hair < hairs; hair++) {
        let top = ((this.top + ((hair + 0.5) * tall) / hairs - 0.5) * ROW) | 0;
        for (let x = first | 0; x < last; x++) {
          const place = (top >> 16) * STRIP + x;
          const part = (deep * ((top >> 8) & 255)) >> 8;
          wet[place] += deep - part;
          wet[place + STRIP] += part;
          top = (top + step) | 0;
        }
      }
    }
  }

  /** Whether a line is seen between two columns, and which part of it. */
  private clip(y0: number, y1: number, thick: number, left: number, wide: number, width: number, height: number): boolean {
    const slope = (y1 - y0) / width;
    const tall = Math.min(THICKEST, thick * Math.sqrt(1 + slope * slope));
    const top = y0 + slope * (left + 0.5) - tall / 2;
    const bottom = top + slope * (wide - 1);
    let first = 0;
    let last = wide;
    if (top <= -tall || bottom <= -tall || top >= height || bottom >= height) {
      if (slope === 0) return false;
      const a = (-tall - top) / slope;
      const b = (height - top) / slope;
      first = Math.max(0, Math.ceil(Math.min(a, b)));
      last = Math.min(wide, Math.floor(Math.max(a, b)) + 1);
      if (first >= last) return false;
    }
    this.first = first;
    this.last = last;
    this.top = top + first * slope + MARGIN;
    this.slope = slope;
    this.tall = tall;
    return true;
  }

  /** Colours of haze mixed. */
  private blur(colours: Rgb[], size: number): void {
    const { wet, haze } = this;
    haze.fill(0);
    for (const [plane, [red, green, blue]] of colours.entries()) {
      const start = plane * size;
      for (let at = MARGIN * STRIP, place = 4 * at; at < size - MARGIN * STRIP; at++, place += 4) {
        const part = wet[start + at];
        if (part === 0) continue;
        haze[place] += Math.imul(part, red);
        haze[place + 1] += Math.imul(part, green);
        haze[place + 2] += Math.imul(part, blue);
        haze[place + 3] += part;
      }
    }
  }

  /** From ink to pixels. */
  private develop(colours: Rgb[], size: number, left: number): void {
    const { wet, haze, pixels, width, height } = this;
    const wide = Math.min(STRIP, width - left);
    const rgb = Int32Array.from(colours.flat());
    const half = (left / 2) % STRIP;
    for (let y = 0; y < height; y++) {
      for (let x = 0; x < wide; x++) {
        let place = (y + MARGIN) * STRIP + x;
        const behind = 4 * (((y >> 1) + MARGIN) * STRIP + half + (x >> 1));
        let red = haze[behind];
        let green = haze[behind + 1];
        let blue = haze[behind + 2];
        let depth = haze[behind + 3];
        for (let at = 0; at < rgb.length; at += 3, place += size) {
          const part = wet[place];
          red = (red + Math.imul(part, rgb[at])) | 0;
          green = (green + Math.imul(part, rgb[at + 1])) | 0;
          blue = (blue + Math.imul(part, rgb[at + 2])) | 0;
          depth = (depth + part) | 0;
        }
        pixels[y * width + left + x] = depth === 0 ? 0 : pixel(red, green, blue, depth, depth / UNIT);
      }
    }
  }
}

/** As wide as before on a picture of half the size, so half as deep. */
const halved = (stroke: Stroke): Stroke => ({ ...stroke, depth: stroke.depth / 2, lower: stroke.lower / 2 });

/** Red, green, blue and alpha in the bytes of one number, as little-endian machines, all of today's, have them. */
function pixel(red: number, green: number, blue: number, sum: number, depth: number): number {
  const share = 1 / sum;
  const alpha = ALPHA[Math.min(ALPHA.length - 1, (depth * STEPS) | 0)];
  return (alpha << 24) | ((blue * share + 0.5) << 16) | ((green * share + 0.5) << 8) | (red * share + 0.5);
}

function byColour(strokes: Stroke[]): Stroke[][] {
  const out = new Map<string, Stroke[]>();
  for (const stroke of strokes) {
    const name = stroke.colour.join();
    const known = out.get(name);
    if (known) known.push(stroke);
    else out.set(name, [stroke]);
  }
  return [...out.values()];
}

const STEPS = 256;
const ALPHA = Uint8Array.from({ length: 6 * STEPS }, (_, at) => Math.round(255 * (1 - Math.exp(-(at + 0.5) / STEPS))));

export const depthOf = (alpha: number): number => -Math.log(1 - Math.min(0.985, alpha));
