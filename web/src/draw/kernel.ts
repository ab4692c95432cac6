// What are the inner loops of ink? WebAssembly where a page may run it, otherwise the same in TypeScript.
// Both write into one memory; places in it are in bytes. ink.wat describes the steps.
import { bent } from "./colour";
import wasm from "./ink.wat";

export const STRIP = 32;
export const MARGIN = 40;
const THICKEST = 36;
const PAGE = 65_536;
/** Number of opacity levels of lines; a fainter line would change no pixel. */
export const LEVELS = 40;
const FAINTEST = 0.006;
const LEAST = FAINTEST ** (4 / 3);

export interface Kernel {
  readonly memory: { readonly buffer: ArrayBuffer };
  /** Reserve this many bytes; their content may be lost. */
  reserve(bytes: number): void;
  sort(
    weight: number,
    from: number,
    to: number,
    count: number,
    first: number,
    last: number,
    levels: number,
    ends: number,
    sortedFrom: number,
    sortedTo: number,
  ): void;
  lay(
    wet: number,
    from: number,
    to: number,
    count: number,
    row: number,
    lower: number,
    thick: number,
    red: number,
    green: number,
    blue: number,
    depth: number,
    left: number,
    wide: number,
    width: number,
    height: number,
  ): void;
  develop(wet: number, haze: number, high: number, wide: number, out: number, stride: number, alphas: number): void;
}

let compiled: WebAssembly.Module | null | undefined;

export function makeKernel(): Kernel {
  if (compiled === undefined) {
    try {
      compiled = new WebAssembly.Module(Uint8Array.from(atob(wasm), (letter) => letter.charCodeAt(0)));
    } catch {
      compiled = null; // some notebooks forbid it
    }
  }
  return compiled ? fast(compiled) : plain();
}

function fast(module: WebAssembly.Module): Kernel {
  const { memory, ...loops } = new WebAssembly.Instance(module).exports as unknown as Pick<
    Kernel,
    "sort" | "lay" | "develop"
  > & { memory: WebAssembly.Memory };
  const reserve = (bytes: number) => {
    const more = Math.ceil((bytes - memory.buffer.byteLength) / PAGE);
    if (more > 0) memory.grow(more);
  };
  return { memory: memory as { buffer: ArrayBuffer }, reserve, ...loops };
}

export function plain(): Kernel {
  const memory = { buffer: new ArrayBuffer(0) };
  let floats = new Float32Array(memory.buffer);
  let words = new Uint32Array(memory.buffer);
  let bytes = new Uint8Array(memory.buffer);
  return {
    memory,
    reserve(size) {
      if (size <= memory.buffer.byteLength) return;
      memory.buffer = new ArrayBuffer(Math.ceil(size / PAGE) * PAGE);
      floats = new Float32Array(memory.buffer);
      words = new Uint32Array(memory.buffer);
      bytes = new Uint8Array(memory.buffer);
    },
    sort(weight, from, to, count, first, last, levels, ends, sortedFrom, sortedTo) {
      const seen = (row: number) => row >= first && row <= last;
      const counts = words.subarray(ends / 4, ends / 4 + 2 * LEVELS + 1).fill(0);
      for (let at = 0; at < count; at++) {
        const signed = floats[weight / 4 + at];
        const size = Math.abs(signed);
        bytes[levels + at] = LEVELS;
        if (size < LEAST || !(seen(words[from / 4 + at]) || seen(words[to / 4 + at]))) continue;
        const level = Math.round(LEVELS * bent(Math.min(1, size))) || 1;
        counts[(bytes[levels + at] += signed < 0 ? -level : level)]++;
      }
      let sum = 0;
      for (let level = 0; level < counts.length; level++) [counts[level], sum] = [sum, sum + counts[level]];
      for (let at = 0; at < count; at++) {
        if (bytes[levels + at] === LEVELS) continue;
        const place = counts[bytes[levels + at]]++;
        words[sortedFrom / 4 + place] = words[from / 4 + at];
        words[sortedTo / 4 + place] = words[to / 4 + at];
      }
    },
    lay(wet, from, to, count, row, lower, thick, red, green, blue, depth, left, wide, width, height) {
      for (let at = 0; at < count; at++) {
        const y0 = words[from / 4 + at] * row + lower;
        const slope = (words[to / 4 + at] * row + lower - y0) / width;
        const tall = Math.min(THICKEST, thick * Math.sqrt(1 + slope * slope));
        const top = y0 + slope * (left + 0.5) - tall / 2;
        const bottom = top + slope * (wide - 1);
        let [first, last] = [0, wide];
        if (Math.min(top, bottom) <= -tall || Math.max(top, bottom) >= height) {
          if (slope === 0) continue;
          const [a, b] = [(-tall - top) / slope, (height - top) / slope];
          first = Math.max(0, Math.ceil(Math.min(a, b)));
          last = Math.min(wide, Math.floor(Math.max(a, b)) + 1);
        }
        const hairs = Math.max(1, Math.round(tall - 0.25));
        const deep = (depth * tall) / hairs;
        for (let hair = 0; hair < hairs; hair++) {
          let y = top + first * slope + MARGIN + ((hair + 0.5) * tall) / hairs - 0.5;
          for (let x = first; x < last; x++, y += slope) {
            const line = y | 0;
            const lowerPart = deep * (y - line);
            const upperPart = deep - lowerPart;
            const place = wet / 4 + 4 * (line * STRIP + x);
            floats[place] += red * upperPart;
            floats[place + 1] += green * upperPart;
            floats[place + 2] += blue * upperPart;
            floats[place + 3] += upperPart;
            floats[place + 4 * STRIP] += red * lowerPart;
            floats[place + 4 * STRIP + 1] += green * lowerPart;
            floats[place + 4 * STRIP + 2] += blue * lowerPart;
            floats[place + 4 * STRIP + 3] += lowerPart;
          }
        }
      }
    },
    develop(wet, haze, high, wide, out, stride, alphas) {
      for (let y = 0; y < high; y++) {
        for (let x = 0; x < wide; x++) {
          const place = wet / 4 + 4 * ((y + MARGIN) * STRIP + x);
          const behind = haze / 4 + 4 * (((y >> 1) + MARGIN) * STRIP + (x >> 1));
          const pixel = out + y * stride + 4 * x;
          const depth = floats[place + 3] + floats[behind + 3];
          for (let part = 0; part < 3; part++)
            bytes[pixel + part] = depth > 0 ? (floats[place + part] + floats[behind + part]) / depth + 0.5 : 0;
          bytes[pixel + 3] = depth > 0 ? bytes[alphas + Math.min(1535, Math.floor(256 * depth))] : 0;
          floats.fill(0, place, place + 4);
        }
      }
    },
  };
}
