import { expect, test } from "vitest";
import { arrange, patchAt, patchRect } from "../src/image/arrange";
import { besides } from "../src/image/beside";
import { heatAlpha, mostOf, strengthOf } from "../src/image/heat";
import { counts, flows, largest, looksOf, strongest, type Looks } from "../src/image/marks";
import { atPlace, coversOf, neighbour, patchesOf, seenOf, type Patch } from "../src/image/patches";
import { around, signs, tiles, whereOn } from "../src/image/shapes";
import { token } from "./fixtures";

/** A grid of patches over part of a picture, after `skip` tokens without a place. */
function grid(rows: number, columns: number, { skip = 0, image = 0, at = [0, 0, 1, 1] } = {}): (Patch | undefined)[] {
  const [left, top, right, bottom] = at;
  const [wide, high] = [(right - left) / columns, (bottom - top) / rows];
  const out: (Patch | undefined)[] = new Array<undefined>(skip).fill(undefined);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      out.push({
        position: out.length,
        image,
        left: left + column * wide,
        top: top + row * high,
        right: left + (column + 1) * wide,
        bottom: top + (row + 1) * high,
      });
    }
  }
  return out;
}

/** n × n weights from what each row looks at. */
function looks(places: (Patch | undefined)[], rows: [number, number][][]): Looks {
  const m = places.length;
  const weights = new Float32Array(m * m);
  rows.forEach((row, from) => row.forEach(([to, weight]) => (weights[from * m + to] = weight)));
  return { weights, m, queries: places, keys: places, same: true };
}

test("tokens with a box are patches; words, class tokens and padding are not", () => {
  const box = [0, 0, 0.5, 1, 0.5, 0, 1, 1, NaN, NaN, NaN, NaN, NaN, NaN, NaN, NaN];
  const found = patchesOf([0, 0, 0, -1], box);
  expect(found.map((patch) => patch?.position)).toEqual([0, 1, undefined, undefined]);
  expect(patchesOf([0, 0], undefined)).toEqual([undefined, undefined]);
});

test("a picture seen whole and in tiles is shown twice, and one of equal patches once", () => {
  const whole = grid(2, 2);
  const tiled = [...whole, ...grid(4, 4).map((patch) => patch && { ...patch, position: patch.position + 4 })];
  expect(coversOf(whole, [1.5]).map((cover) => [cover.image, cover.aspect, cover.patches.length])).toEqual([
    [0, 1.5, 4],
  ]);
  expect(coversOf(tiled, [1]).map((cover) => cover.patches.map((patch) => patch.position))).toEqual([
    [0, 1, 2, 3],
    Array.from({ length: 16 }, (_, at) => at + 4),
  ]);
});

test("tiles only half as large as the patches of the whole are told apart too", () => {
  const halves = [...grid(4, 4), ...grid(4, 8).map((patch) => patch && { ...patch, position: patch.position + 16 })];
  expect(coversOf(halves, [2]).map((cover) => cover.patches.length)).toEqual([16, 32]);
});

test("patches of unlike size that lie side by side stay on one picture", () => {
  const mixed = [...grid(1, 1, { at: [0, 0, 0.5, 1] }), ...grid(2, 2, { at: [0.5, 0, 1, 1] })];
  expect(coversOf(mixed, [1])).toHaveLength(1);
});

test("two pictures of an input are two covers with patches of their own", () => {
  const both = [
    ...grid(2, 2),
    ...grid(2, 2, { image: 1 }).map((patch) => patch && { ...patch, position: patch.position + 4 }),
  ];
  expect(coversOf(both, [1, 2]).map((cover) => [cover.image, cover.patches[0].position])).toEqual([
    [0, 0],
    [1, 4],
  ]);
});

test("pictures keep their shape and fill the room", () => {
  const [one] = arrange([2], 828, 828);
  expect(one).toEqual({ x: 14, y: 214, width: 800, height: 400 });
  const two = arrange([1, 1], 842, 428);
  expect(two.map(({ x, width }) => [x, width])).toEqual([
    [14, 400],
    [428, 400],
  ]);
  expect(arrange([1], 10, 10)).toEqual([]);
});

test("a pixel finds its patch on a grid that is not square, and none on a cut-off border", () => {
  const [cover] = coversOf(grid(2, 4, { skip: 1, at: [0.25, 0, 0.75, 1] }), [2]);
  const rect = { x: 100, y: 50, width: 800, height: 400 };
  expect(patchAt([cover], [rect], 100 + 800 * 0.26, 60)?.position).toBe(1);
  expect(patchAt([cover], [rect], 100 + 800 * 0.74, 449)?.position).toBe(8);
  expect(patchAt([cover], [rect], 100 + 800 * 0.2, 60)).toBeUndefined();
  expect(patchAt([cover], [rect], 20, 60)).toBeUndefined();
  expect(patchRect(seenOf(cover.patches), rect)).toEqual({ x: 300, y: 50, width: 400, height: 400 });
  expect(around({ x: 300, y: 50, width: 400, height: 400 }, rect)).toEqual([
    { x: 100, y: 50, width: 200, height: 400 },
    { x: 700, y: 50, width: 200, height: 400 },
  ]);
});

test("a box that reaches beyond the picture is cut at its edge", () => {
  expect(
    patchRect({ left: -0.1, top: 0.9, right: 0.2, bottom: 1.1 }, { x: 10, y: 0, width: 100, height: 100 }),
  ).toEqual({ x: 10, y: 90, width: 20, height: 10 });
});

// One class token, then 2 × 3 patches: 1 2 3 / 4 5 6.
const planted = () =>
  looks(grid(2, 3, { skip: 1 }), [
    [[5, 1]],
    [
      [2, 0.9],
      [1, 0.1],
    ],
    [
      [2, 0.6],
      [3, 0.4],
    ],
    [
      [0, 0.7],
      [1, 0.3],
    ],
    [
      [4, 0.51],
      [0, 0.49],
    ],
    [
      [6, 0.049],
      [0, 0.04],
    ],
    [[5, 0.05]],
  ]);

test("the strongest key of each patch gives an arrow, a circle or a square, from 0.05 on", () => {
  const marks = strongest(planted());
  expect(marks.map(({ kind, from, to }) => [kind, from, to])).toEqual([
    ["arrow", 1, 2],
    ["circle", 2, 2],
    ["square", 3, 0],
    ["circle", 4, 4],
    ["arrow", 6, 5],
  ]);
  expect(counts(marks)).toEqual({ arrow: 2, circle: 2, square: 1 });
});

test("flows are all weights of patches from the threshold on, the strongest last", () => {
  const found = flows(planted(), 0.3);
  expect(found.map(({ from, to }) => [from, to])).toEqual([
    [3, 1],
    [2, 3],
    [4, 0],
    [4, 4],
    [2, 2],
    [3, 0],
    [1, 2],
  ]);
  expect(largest(planted())).toBeCloseTo(0.9); // the class token's own 1 is no patch's
  expect(counts(flows(planted(), 0.5))).toEqual({ arrow: 1, circle: 2, square: 1 });
});

test("a patch that is looked at by others is not itself across two sides", () => {
  const places = grid(1, 2);
  const cross = { ...looks(places, [[[0, 1]], [[0, 1]]]), same: false };
  expect(counts(strongest(cross))).toEqual({ arrow: 2, circle: 0, square: 0 });
});

test("a row is what a patch looks at, a column who looks at it", () => {
  expect([...looksOf(planted(), "query", [1])].map((x) => Number(x.toFixed(2)))).toEqual([0, 0.1, 0.9, 0, 0, 0, 0]);
  expect([...looksOf(planted(), "key", [0])].map((x) => Number(x.toFixed(2)))).toEqual([0, 0, 0, 0.7, 0.49, 0.04, 0]);
});

test("the overlay is the square root of the share of the largest weight on a patch", () => {
  const places = grid(1, 2, { skip: 1 });
  const weights = Float32Array.from([0.9, 0.1, 0.025]);
  const most = mostOf(weights, places);
  expect(most).toBeCloseTo(0.1);
  expect([0.9, 0.1, 0.025, 0].map((weight) => strengthOf(weight, most))).toEqual([
    1,
    expect.closeTo(1, 5),
    expect.closeTo(0.5, 5),
    0,
  ]);
  const [cover] = coversOf(places, [2]);
  const made = tiles(
    places,
    { weights, most, signed: false },
    whereOn([cover], [{ x: 0, y: 0, width: 200, height: 100 }]),
  );
  expect(made.map(({ rect, alpha }) => [rect.x, rect.width, alpha])).toEqual([
    [0, 100, expect.closeTo(heatAlpha(1))],
    [100, 100, expect.closeTo(heatAlpha(0.5))],
  ]);
});

test("arrows run from the middle of a patch to the middle of another, thicker and clearer with weight", () => {
  const all = planted();
  const [cover] = coversOf(all.queries, [1.5]);
  const where = whereOn([cover], [{ x: 0, y: 0, width: 300, height: 200 }]);
  const [weak, strong] = signs(
    [
      { kind: "arrow", from: 3, to: 1, weight: 0.3 },
      { kind: "arrow", from: 1, to: 2, weight: 0.9 },
    ],
    all.queries,
    all.keys,
    where,
    true,
  );
  expect([strong.from, strong.to]).toEqual([
    [50, 50],
    [150, 50],
  ]);
  expect(strong.width).toBeGreaterThan(weak.width);
  expect(strong.alpha).toBeGreaterThan(weak.alpha);
  expect(signs([{ kind: "square", from: 3, to: 0, weight: 1 }], all.queries, all.keys, where, false)[0].to).toEqual([
    250, 50,
  ]);
});

test("a place stays where it is when another layer numbers its patches otherwise", () => {
  const rows = grid(4, 4);
  const windows = [...rows].reverse().map((patch, position) => patch && { ...patch, position });
  const patch = rows[6] as Patch;
  expect(atPlace(windows, patch)?.position).toBe(9);
  expect(atPlace(grid(2, 2), patch)?.position).toBe(1);
  expect(atPlace(grid(2, 2, { image: 1 }), patch)).toBeUndefined();
});

test("the keyboard walks to the patch beside, and stays at the edge", () => {
  const [cover] = coversOf(grid(2, 3), [1.5]);
  const from = cover.patches[1];
  expect(
    [
      [1, 0],
      [-1, 0],
      [0, 1],
      [0, -1],
    ].map(([across, down]) => neighbour(cover.patches, from, across, down).position),
  ).toEqual([2, 0, 4, 1]);
});

test("words stand in order beside the picture, each run of patches as one mark", () => {
  const tokens = ["<s>", "a", "b", "pad", "What", "is"].map((text) => token(text));
  expect(besides(tokens, (at) => at >= 1 && at <= 3).map((item) => item.token?.text ?? item.count)).toEqual([
    "<s>",
    3,
    "What",
    "is",
  ]);
});
