// Do the directions of a head add up to q·k, and leave the softmax as it is?
import { expect, test } from "vitest";
import { alongDirections, togetherOf, workOf } from "../src/panels/neuron/work";
import type { HeadDirections, Vectors } from "../src/source/wire";
import { turn } from "../src/weights/directions";

const grid = (rows: number[][]) => ({ data: Float32Array.from(rows.flat()), shape: [rows.length, rows[0].length] });
const vectors = {
  input: 0, head: "L0H0", scale: 0.5, softcap: null, sink: null, mask: "full", shared: [],
  query: grid([[1, 2, 0], [0, 1, -1]]), key: grid([[1, 0, 2], [0, 3, 1], [2, 2, 2]]),
  value: null, added: null, seen: null,
} as unknown as Vectors; // prettier-ignore
// P and R with P Rᵀ = 1: P doubles, swaps and adds; R is the inverse of its transpose.
const directions = {
  head: "L0H0", count: 1,
  query: grid([[0, 2, 0], [1, 0, 1], [0, 0, 1]]), key: grid([[0, 0.5, 0], [1, 0, 0], [-1, 0, 1]]),
  mean_key: grid([[1, 1, 1]]), share: grid([[1, 0, 0]]), kept: grid([[0, 1]]), telling: [],
} as unknown as HeadDirections; // prettier-ignore

test("the bars of a row add up to q·k less q·mean key", () => {
  const plain = workOf(vectors, 0, new Set(), false, null);
  const work = alongDirections(plain, turn(vectors, directions), 1);
  // q = (1, 2, 0), q·k = 1, 6, 6 and q·mean = 3, by hand
  expect([...work.made.dot]).toEqual([-2, 3, 3]);
  expect([...plain.made.dot]).toEqual([1, 6, 6]);
  for (let key = 0; key < 3; key++)
    expect(work.product[2 * key] + work.product[2 * key + 1]).toBeCloseTo(work.made.dot[key], 5);
  expect([...work.made.weight]).toEqual([...plain.made.weight]);
  // the first direction: a = q₁ + … = 2, b = (k − mean)·(0, 1, −1)
  expect([...work.product].filter((_, at) => at % 2 === 0)).toEqual([-4, 4, 0]);
});

test("several rows are averaged or summed", () => {
  const works = [0, 1].map((row) => workOf(vectors, row, new Set(), false, null));
  const mean = togetherOf(works, "mean", 1);
  const sum = togetherOf(works, "sum", 1);
  works[0].made.weight.forEach((weight, at) => {
    expect(mean.made.weight[at]).toBeCloseTo((weight + works[1].made.weight[at]) / 2, 6);
    expect(sum.made.weight[at]).toBeCloseTo(weight + works[1].made.weight[at], 6);
  });
  expect(sum.rows).toEqual([0, 1]);
});
