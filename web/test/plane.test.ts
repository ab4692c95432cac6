// Where the panels of all heads stand.
import { expect, test } from "vitest";
import { fromNumbers, START_ORBIT, toNumbers, type Place, type Size } from "../src/map/camera";
import { fitAll, fromAddress, headAt, panelBox, planeFor, toAddress } from "../src/map/plane";

type Box = Place & Size;

/** Heads of a model, layer by layer. */
const model = (layers: number, heads: number) => ({
  spots: Array.from({ length: layers * heads }, (_, at) => ({ column: at % heads, row: Math.floor(at / heads) })),
  layers: Array.from({ length: layers }, (_, layer) => layer),
});
const planeOf = (layers: number, heads: number, size: Size) => {
  const { spots, layers: numbers } = model(layers, heads);
  return planeFor(spots, numbers, size);
};

const windows = [
  { width: 958, height: 794 },
  { width: 900, height: 594 },
  { width: 420, height: 700 },
];
const cases = [
  [1, 1],
  [1, 12],
  [12, 12],
  [18, 4],
  [30, 9],
  [6, 12],
  [64, 16],
  [2, 40],
].flatMap(([layers, heads]) => windows.map((size) => [layers, heads, size] as const));

test.each(cases)("panels of %i layers × %i heads are in the window and apart", (layers, heads, size) => {
  const plane = planeOf(layers, heads, size);
  const camera = fitAll(plane, size);
  const boxes = plane.corners.map((_, head) => panelBox(plane, camera, head));
  expect(Math.min(...boxes.map(({ x, y }) => Math.min(x, y)))).toBeGreaterThanOrEqual(0);
  expect(Math.max(...boxes.map(({ x, width }) => x + width))).toBeLessThanOrEqual(size.width);
  expect(Math.max(...boxes.map(({ y, height }) => y + height))).toBeLessThanOrEqual(size.height);
  const overlap = (a: Box, b: Box) =>
    a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
  expect(boxes.some((a, at) => boxes.slice(at + 1).some((b) => overlap(a, b)))).toBe(false);
});

test("a tall model goes on beside itself, a layer still being one line", () => {
  const { corners } = planeOf(18, 4, windows[0]);
  for (let layer = 0; layer < 18; layer++) {
    const line = corners.slice(4 * layer, 4 * layer + 4);
    expect(new Set(line.map(({ y }) => y)).size).toBe(1);
    expect(line.map(({ x }) => x)).toEqual(line.map(({ x }) => x).sort((a, b) => a - b));
  }
  expect(new Set(corners.map(({ y }) => y)).size).toBeLessThan(18);
});

test("the head under a pixel is the one drawn there", () => {
  const plane = planeOf(18, 4, windows[0]);
  const camera = fitAll(plane, windows[0]);
  plane.corners.forEach((_, head) => {
    const { x, y, width, height } = panelBox(plane, camera, head);
    expect(headAt(plane, camera, x + 1, y + 1)).toBe(head);
    expect(headAt(plane, camera, x + width - 1, y + height - 1)).toBe(head);
  });
});

test("an address leads to the same part of the same panel in a window with another arrangement", () => {
  const { spots } = model(18, 4);
  const [wide, narrow] = [planeOf(18, 4, windows[0]), planeOf(18, 4, windows[2])];
  const head = 15 * 4 + 2;
  const camera = {
    scale: 200,
    x: (wide.corners[head].x + 0.3) * 200 - windows[0].width / 2,
    y: (wide.corners[head].y + 0.6) * 200 - windows[0].height / 2,
  };
  const numbers = toNumbers(toAddress(wide, spots, camera, windows[0], -1), windows[0], START_ORBIT);
  const other = fromAddress(narrow, spots, fromNumbers(numbers, windows[2]), windows[2], -1);
  expect((other.x + windows[2].width / 2) / other.scale - narrow.corners[head].x).toBeCloseTo(0.3, 3);
  expect((other.y + windows[2].height / 2) / other.scale - narrow.corners[head].y).toBeCloseTo(0.6, 3);
});
