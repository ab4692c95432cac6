import { expect, test } from "vitest";
import { sheetBoxes, thumbSize, typicalWidth } from "../src/map/thumbs";

const grid = <T>(data: T) => ({ data, shape: [0] });
// Two pictures on a sheet of 400 × 200: input 3 at the left, 100 × 50; input 5 right of it, 200 × 200.
const sheet = {
  width: 400,
  height: 200,
  input: grid(Uint32Array.from([3, 5])),
  image: grid(Uint16Array.from([0, 0])),
  cell: grid(Uint16Array.from([0, 0, 100, 50, 100, 0, 200, 200])),
};
const parts = (boxes: Uint16Array, at: number) =>
  [...boxes.subarray(4 * at, 4 * at + 4)].map(
    (part, side) => Math.round((part / 65535) * (side % 2 ? 200 : 400) * 10) / 10,
  );

test("a point's part of the sheet is its box within its picture's cell", () => {
  const box = Float32Array.from([0.5, 0, 1, 0.5, 0.25, 0.5, 0.5, 1, NaN, NaN, NaN, NaN, -0.1, 0, 0.2, 1.2]);
  const made = sheetBoxes({ points: 4, input: [3, 5, 5, 3], image: Int16Array.from([0, 0, -1, 0]), box }, sheet);
  expect(parts(made, 0)).toEqual([50, 0, 100, 25]);
  expect(parts(made, 1)).toEqual([150, 100, 200, 200]);
  expect(parts(made, 2)).toEqual([0, 0, 0, 0]);
  expect(parts(made, 3)).toEqual([0, 0, 20, 50]);
});

test("a picture that is not on the sheet leaves its points dots", () => {
  const made = sheetBoxes(
    { points: 1, input: [9], image: Int16Array.from([0]), box: Float32Array.from([0, 0, 1, 1]) },
    sheet,
  );
  expect([...made]).toEqual([0, 0, 0, 0]);
});

test("small panels have dots, large ones patches that grow slower than the panel", () => {
  expect(thumbSize(60, 10_000)).toBe(0);
  const [near, nearer] = [thumbSize(800, 2000), thumbSize(3200, 2000)];
  expect(near).toBeGreaterThan(10);
  expect(nearer / near).toBeCloseTo(2);
});

test("the usual patch decides how fine a sheet is needed", () => {
  expect(typicalWidth(Float32Array.from([NaN, NaN, NaN, NaN, 0, 0, 0.125, 1, 0.125, 0, 0.25, 1, 0, 0, 1, 1]))).toBe(
    0.125,
  );
});
