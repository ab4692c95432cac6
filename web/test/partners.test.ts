// The true strongest partners of a point, and the nearest on the map.
import { describe, expect, test } from "vitest";
import type { MapData } from "../src/map/data";
import { apart, sightOf, trueNear } from "../src/map/partners";
import { fromWhole } from "../src/weights/rows";

/** Two inputs on one line: queries 0 1 2 of input 0, query 0 of input 1, then keys in the same order. */
const line = [0, 10, 20, 1, 30, 11, 2, 0];
const data = {
  points: 8,
  queries: 4,
  dims: 2,
  shapes: [[1, 0.5, 1]],
  places: Uint16Array.from(line.flatMap((x) => [x, 0])),
  input: Uint32Array.from([0, 0, 0, 1, 0, 0, 0, 1]),
  position: Uint32Array.from([0, 1, 2, 0, 0, 1, 2, 0]),
} as unknown as MapData;

describe("true and near", () => {
  test("a query has only keys of its own input that it can see", () => {
    const sight = { weights: [0.6, 0.4, 0], seen: [1, 1, 0] };
    const { strongest, nearest, both } = trueNear(data, 0, 1, sight);
    expect(strongest.map(({ position, weight }) => [position, weight])).toEqual([
      [0, 0.6],
      [1, 0.4],
    ]);
    // The key at 2 is hidden by the mask, although it is nearer than the one at 30.
    expect(nearest.map(({ at }) => at)).toEqual([5, 4]);
    expect(both).toBe(2);
  });

  test("a key has queries, and hidden tokens are left out", () => {
    const sight = { weights: [0.2, 0.3, 0.9], seen: [1, 1, 1] };
    const shown = trueNear(data, 0, 6, sight, new Set([2]));
    expect(shown.strongest.map(({ position }) => position)).toEqual([1, 0]);
    expect(shown.nearest.map(({ at }) => at)).toEqual([0, 1]);
  });

  test("a token that is not on a sampled map is named, without a place", () => {
    const sight = { weights: [0.1, 0, 0.2, 0.7], seen: [1, 1, 1, 1] };
    const { strongest, nearest } = trueNear(data, 0, 0, sight);
    expect(strongest[0]).toMatchObject({ at: -1, position: 3 });
    expect(nearest.every(({ at }) => at >= 0)).toBe(true);
  });

  test("a unit has the same length on every axis", () => {
    const flat = { ...data, places: Uint16Array.from([0, 0, 65535, 65535]), points: 2 } as MapData;
    expect(apart(flat, 0, 0, 1)).toBeCloseTo(Math.hypot(1, 0.5), 12);
  });
});

test("a saved page reads a row or a column; a list of the strongest is not enough", () => {
  const rows = fromWhole(Float32Array.from([1, 0, 0.25, 0.75]), 2, 2);
  expect(sightOf(rows, "query", 0)).toEqual({ weights: Float32Array.from([1, 0]), seen: Float32Array.from([1, 0]) });
  expect(Array.from(sightOf(rows, "key", 1)?.weights ?? [])).toEqual([0, 0.75]);
  expect(sightOf({ ...rows, whole: false }, "query", 0)).toBeNull();
});
