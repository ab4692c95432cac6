// The columns of the neuron view.
import { expect, test } from "vitest";
import { columnsFor } from "../src/panels/neuron/columns";
import { strongest } from "../src/panels/neuron/work";

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
