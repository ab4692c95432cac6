import { expect, test } from "vitest";
import { apart, ownName, squares } from "../src/heads/compare";
import { bins, cells, column, distributed, figure, listed, range, summary } from "../src/heads/data";
import { limitOf, within } from "../src/heads/only";
import type { About, ComparedModels, HeadScores } from "../src/source/wire";

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

test("every value falls into one part, and the end into the last", () => {
  expect(bins([0, 0.1, 0.5, 1, NaN], [0, 1], 4)).toEqual([2, 0, 1, 1]);
});

test("a summary has the quarters that NumPy gives, and a deviation that divides by n", () => {
  const told = summary([0.2, 0.4, NaN, 0.9, 0.5]);
  expect(told.heads).toBe(4);
  expect(told.deviation).toBeCloseTo(Math.sqrt((0.09 + 0.01 + 0.16 + 0) / 4));
  expect(told.quarters.map((one) => Number(one.toFixed(6)))).toEqual([0.2, 0.35, 0.45, 0.6, 0.9]);
  expect(summary([]).quarters[2]).toBeNaN();
});

test("the distribution is of a score, also where the picture shows kinds and the scatter heads alike", () => {
  expect(distributed("entropy", "self", "next")).toBe("entropy");
  expect(distributed("kind", "alike", "next")).toBe("next");
});

test("heads of a model are placed by their names alone, towers below each other", () => {
  expect(squares(["enc.L0H0", "enc.L2H1", "dec.L0H3"]).map(({ row, across }) => [row, across])).toEqual([
    [0, 0],
    [1, 1],
    [2, 3],
  ]);
});

test("heads that differ most come first, by the nearest or by the namesake", () => {
  const made = {
    models: [{ matched: ["L0H0", "L0H1"] }, { matched: ["L0H0", "L0H1"] }],
    counterparts: [{ nearest: { data: Uint16Array.from([1, 1]) }, away: grid([0.1, 0.4]), same: grid([0.9, 0.4]) }],
  } as unknown as ComparedModels;
  expect(apart(made, 1, "nearest").map((one) => [one.head, one.nearest])).toEqual([
    ["L0H1", "L0H1"],
    ["L0H0", "L0H1"],
  ]);
  expect(apart(made, 1, "same")[0].head).toBe("L0H0");
});

test("a limit of a score leaves the heads within it, and a text that is no limit leaves all", () => {
  expect(limitOf("umap-2d.strongest >= 0.5")).toEqual({ name: "umap-2d.strongest", sign: ">=", value: 0.5 });
  expect(limitOf("entropy<=-1.25")).toEqual({ name: "entropy", sign: "<=", value: -1.25 });
  expect(["", "entropy", ">=2", "entropy>=two"].map(limitOf)).toEqual([null, null, null, null]);
  expect(within(scores, [2, 1, 0], "margin>=0.3")).toEqual([1]);
  expect(within(scores, [2, 1, 0], "entropy<=0.95")).toEqual([1, 0]);
  expect(within(scores, [2, 1, 0], "nothing>=0.3")).toEqual([2, 1, 0]);
});

test("checkpoints of one model are told apart by their folders", () => {
  expect(["gpt2 (step0.atlas)", "gpt2 (step1.atlas)", "gpt2"].map(ownName)).toEqual([
    "step0.atlas",
    "step1.atlas",
    "gpt2",
  ]);
  expect(ownName("x (a-very-long-name-of-a-run.step-1000.atlas)")).toBe("a-very-l…p-1000.atlas");
});
