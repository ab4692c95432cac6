import { expect, test } from "vitest";
import { cells, column, figure, listed, range } from "../src/heads/data";
import type { About, HeadScores } from "../src/source/wire";

const grid = (values: number[]) => ({ data: Float32Array.from(values), shape: [values.length] });
const scores = {
  heads: ["L0H0", "L0H1", "L2H0"],
  kinds: ["parallel", "mixed"],
  kind: { data: Uint8Array.from([1, 0, 255]), shape: [3] },
  margin: grid([0.1, 0.6, NaN]),
  agree: grid([1, 0.5, NaN]),
  odd: grid([3, 1, 2]),
  details: ["", "1 before", ""],
  measures: [{ name: "entropy", title: "entropy", formula: "", source: "", chance: "" }],
  value: { data: Float32Array.from([0.2, 0.9, NaN]), shape: [1, 3] },
} as unknown as HeadScores;

test("heads are sorted largest first, then turned round; what has no number comes last", () => {
  expect(listed(scores, [], "entropy")).toEqual([1, 0, 2]);
  expect(listed(scores, [], "-entropy")).toEqual([0, 1, 2]);
  expect(listed(scores, [], "odd")).toEqual([0, 2, 1]);
  expect(listed(scores, [], "-head")).toEqual([2, 1, 0]);
});

test("only the kinds asked for are listed", () => {
  expect(listed(scores, ["parallel"], "head")).toEqual([1]);
});

test("a name that is no score has no column", () => {
  expect(column(scores, "beauty")).toBeUndefined();
  expect(column(scores, "margin")?.of(1)).toBeCloseTo(0.6);
});

test("layers without attention leave no gap, and their numbers stay", () => {
  const about = { towers: [{ name: "decoder", layers: [{ layer: 0 }, { layer: 2 }] }] } as unknown as About;
  expect(cells(scores, about)).toEqual([
    { head: 0, row: 0, across: 0 },
    { head: 1, row: 0, across: 1 },
    { head: 2, row: 1, across: 0 },
  ]);
});

test("ranges leave out what is no number and are never empty", () => {
  expect(range([NaN, 2, 5])).toEqual([2, 5]);
  expect(range([3, 3])).toEqual([2.5, 3.5]);
  expect(range([NaN])).toEqual([0, 1]);
  expect(figure(NaN)).toBe("–");
});
