// The columns of the neuron view.
import { expect, test } from "vitest";
import { columnsFor } from "../src/panels/neuron/columns";
import { differenceOf, strongest, workOf } from "../src/panels/neuron/work";
import type { Vectors } from "../src/source/wire";

test.each(
  [520, 700, 900, 1440].flatMap((width) =>
    [8, 64, 256, 512].flatMap((neurons) => [true, false].map((values) => [width, neurons, values] as const)),
  ),
)("columns fit %i pixels with %i neurons, values: %s", (width, neurons, values) => {
  const columns = columnsFor(width, neurons, 0.12 * width, 0.12 * width, values);
  expect(columns.width).toBeLessThanOrEqual(width + 1e-6);
  const cells = columns.strip / columns.cell;
  expect(cells * columns.gather).toBeGreaterThanOrEqual(neurons);
  expect(cells * columns.gather).toBeLessThan(neurons + columns.gather);
});

test("neurons are gathered only where they would not fit", () => {
  expect(columnsFor(1200, 64, 80, 80, false).gather).toBe(1);
  expect(columnsFor(900, 256, 80, 80, false).gather).toBeGreaterThan(1);
});

test("a cell of several neurons shows the strongest, whatever its sign", () => {
  const numbers = Float32Array.of(9, 9, 0.1, -0.7, 0.4);
  expect(strongest(numbers, 2, Uint32Array.of(0, 1, 2))).toBe(1);
});

const vectors = (query: number[], key: number[], mask: Vectors["mask"] = "full"): Vectors => ({
  input: 0,
  head: "L0H0",
  scale: 1,
  softcap: null,
  sink: null,
  mask,
  shared: [],
  query: { data: Float32Array.from(query), shape: [2, 1] },
  key: { data: Float32Array.from(key), shape: [2, 1] },
  value: null,
  added: null,
  seen: null,
});

test("the difference of two runs is after − before in every column, of keys that either sees", () => {
  const none: ReadonlySet<number> = new Set();
  const [before, after] = [
    workOf(vectors([0, 1], [0, 0]), 0, none, false, null),
    workOf(vectors([2, 1], [0, Math.log(3) / 2], "causal"), 0, none, false, null),
  ];
  const made = differenceOf(before, after);
  expect([...made.vectors.query.data]).toEqual([2, 0]);
  expect(made.vectors.key.data[1]).toBeCloseTo(Math.log(3) / 2);
  expect(made.made.dot[1]).toBeCloseTo(Math.log(3));
  // Before, both keys have half of the weight; after, the mask leaves the first alone.
  expect([...made.made.weight]).toEqual([0.5, -0.5]);
  expect([...made.made.seen]).toEqual([1, 1]);
  expect(made.differs).toBe(true);
});
