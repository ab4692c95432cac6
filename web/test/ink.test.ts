import { beforeAll, describe, expect, test } from "vitest";
import { batches, type LineSet } from "../src/draw/batch";
import { NEGATIVE, POSITIVE } from "../src/draw/colour";
import { Ink, type Stroke } from "../src/draw/ink";
import { makeKernel, plain } from "../src/draw/kernel";
import type { Lines } from "../src/weights/lines";

beforeAll(() => {
  class Picture {
    constructor(
      readonly data: Uint8ClampedArray,
      readonly width: number,
      readonly height: number,
    ) {}
  }
  Object.assign(globalThis, { ImageData: Picture });
});

/** Repeatable numbers from 0 to 1. */
function dice(seed: number): () => number {
  let now = seed;
  return () => (now = (now * 1_664_525 + 1_013_904_223) % 2 ** 32) / 2 ** 32;
}

function strokes(rows: number, lines: number, seed: number, depth: () => number): Stroke[] {
  const roll = dice(seed);
  const some = () => Uint32Array.from({ length: lines }, () => Math.floor(rows * roll()));
  return [0, 1, 2].map((at) => ({
    colour: [40 + 80 * at, 250 - 90 * at, 30],
    depth: depth(),
    lower: 5 + at,
    from: some(),
    to: some(),
  }));
}

const drawn = (ink: Ink, all: Stroke[], row: number, thick: number) => {
  for (const _ of ink.lay(all, row, thick));
  return Uint8ClampedArray.from(ink.picture.data);
};

/** Depth in each pixel as a plain reading of the definition gives it: a band as tall as the line is there, by overlap. */
function expected(all: Stroke[], width: number, height: number, row: number, thick: number): Float64Array {
  const out = new Float64Array(width * height);
  for (const { depth, lower, from, to } of all) {
    from.forEach((start, at) => {
      const [y0, y1] = [start * row + lower, to[at] * row + lower];
      const tall = thick * Math.hypot(1, (y1 - y0) / width);
      for (let x = 0; x < width; x++) {
        const top = y0 + ((y1 - y0) * (x + 0.5)) / width - tall / 2;
        for (let y = Math.max(0, Math.floor(top)); y < Math.min(height, top + tall); y++) {
          out[y * width + x] += depth * Math.max(0, Math.min(y + 1, top + tall) - Math.max(y, top));
        }
      }
    });
  }
  return out;
}

const depthIn = (pixels: Uint8ClampedArray, at: number) => -Math.log(1 - Math.min(254.5, pixels[4 * at + 3]) / 255);

describe.each([
  ["WebAssembly", makeKernel],
  ["TypeScript", plain],
] as const)("lines sorted by %s", (_, kernel) => {
  const roll = dice(7);
  const some = (count: number): Lines => {
    const row = () => Uint32Array.from({ length: count }, () => Math.floor(60 * roll()));
    const weight = Float32Array.from({ length: count }, () => (roll() - 0.3) ** 3 * 4);
    return { count, from: row(), to: row(), weight, drawn: 0, total: 0 };
  };

  test.each([0, 1, 500])(
    "%i of them: each once, by its opacity and sign, and only what has an end in view",
    (count) => {
      const sets: LineSet[] = [
        { lines: some(count), colour: null },
        { lines: some(300), colour: [1, 2, 3] },
      ];
      const made = batches(sets, { first: 20, last: 31 }, kernel());
      const found = made.flatMap(({ colour, alpha, lane, from, to }) =>
        [...from].map((row, at) => [lane, row, to[at], alpha.toFixed(3), String(colour)].join(" ")),
      );
      const wanted = sets.flatMap(({ lines, colour }, set) =>
        [...lines.weight].flatMap((weight, at) => {
          const seen = [lines.from[at], lines.to[at]].some((row) => row >= 20 && row <= 31);
          const opaque = Math.min(1, Math.abs(weight)) ** 0.75;
          const tint = colour ?? (weight < 0 ? NEGATIVE : POSITIVE);
          return seen && opaque >= 0.006
            ? [
                [
                  set / 2 - 0.25,
                  lines.from[at],
                  lines.to[at],
                  (Math.max(1, Math.round(40 * opaque)) / 40).toFixed(3),
                  String(tint),
                ].join(" "),
              ]
            : [];
        }),
      );
      expect(found.sort()).toEqual(wanted.sort());
      expect(made.map((batch) => batch.alpha)).toEqual([...made.map((batch) => batch.alpha)].sort((a, b) => b - a));
    },
  );
});

describe.each([
  ["WebAssembly", makeKernel],
  ["TypeScript", plain],
] as const)("ink by %s", (_, kernel) => {
  test("lies where the lines run, as deep as they are", () => {
    const [width, height] = [150, 90];
    const all = strokes(8, 6, 1, () => 0.12);
    const pixels = drawn(new Ink(width, height, kernel()), all, 11, 2);
    const want = expected(all, width, height, 11, 2);
    let [sum, wanted] = [0, 0];
    want.forEach((depth, at) => {
      expect(Math.abs(depthIn(pixels, at) - depth)).toBeLessThan(0.09); // hairs are a little softer than a band
      sum += depthIn(pixels, at);
      wanted += depth;
    });
    expect(Math.abs(sum / wanted - 1)).toBeLessThan(0.02);
  });

  test("of lines that leave the picture stays what is inside", () => {
    const steep: Stroke[] = [
      { colour: [10, 20, 30], depth: 0.5, lower: -200, from: Uint32Array.of(0, 50), to: Uint32Array.of(100, 2) },
    ];
    const pixels = drawn(new Ink(70, 40, kernel()), steep, 9, 1.5);
    const want = expected(steep, 70, 40, 9, 1.5);
    const sum = want.reduce((total, depth) => total + depth, 0);
    expect(sum).toBeGreaterThan(10);
    expect(Math.abs(want.reduce((total, _, at) => total + depthIn(pixels, at), 0) / sum - 1)).toBeLessThan(0.05);
    expect([...pixels.subarray(0, 4 * 70 * 40)].some((part, at) => at % 4 === 0 && part === 10)).toBe(true);
  });

  test("a second picture has nothing of the first, also when that was given up", () => {
    const ink = new Ink(100, 50, kernel());
    const first = drawn(
      ink,
      strokes(5, 4, 2, () => 0.3),
      10,
      1,
    );
    const work = ink.lay(
      strokes(5, 9000, 3, () => 0.01),
      10,
      1,
    );
    work.next();
    expect(
      drawn(
        ink,
        strokes(5, 4, 2, () => 0.3),
        10,
        1,
      ),
    ).toEqual(first);
  });

  test("haze is blurred, and neither lost nor doubled", () => {
    const [width, height] = [190, 101];
    const all = strokes(10, 7000, 4, () => 0.0004);
    const hazy = drawn(new Ink(width, height, kernel()), all, 10, 1);
    const want = expected(all, width, height, 10, 1);
    const near = (at: number, of: (at: number) => number) => {
      let total = 0;
      for (let y = -3; y <= 3; y++) for (let x = -3; x <= 3; x++) total += of(at + y * width + x);
      return total / 49;
    };
    for (let y = 8; y < height - 8; y += 7) {
      for (let x = 8; x < width - 8; x += 11) {
        const at = y * width + x;
        const deep = near(at, (one) => want[one]);
        expect(Math.abs(near(at, (one) => depthIn(hazy, one)) - deep)).toBeLessThan(0.03 + 0.12 * deep);
      }
    }
  });
});

test("both kernels make the same picture", () => {
  const all = strokes(12, 300, 5, () => 0.02);
  const [one, two] = [makeKernel, plain].map((kernel) => drawn(new Ink(201, 120, kernel()), all, 10, 1.5));
  let worst = 0;
  one.forEach((part, at) => (worst = Math.max(worst, Math.abs(part - two[at]))));
  expect(worst).toBeLessThanOrEqual(2);
});
