import { expect, test } from "vitest";
import type { Edges, Vectors } from "../src/source/wire";
import { align, difference, unitsBoth } from "../src/weights/compare";
import { byNorm, hide, rowNorms } from "../src/weights/hide";
import { everything, linesOf, linesOfTokens, share } from "../src/weights/lines";
import { byContribution, trace } from "../src/weights/neurons";
import { number, partners, ranked, weightText } from "../src/weights/partners";
import { dense, fromEdges, mostLeftOut, weightAt, type HeadRows } from "../src/weights/rows";
import { mergeWords, unitsOf } from "../src/weights/units";
import { head, rowsOf, token } from "./fixtures";

const none = new Set<number>();
const causal = head([
  [1, 0, 0],
  [0.9, 0.1, 0],
  [0.5, 0.3, 0.2],
]);

test("hiding a key makes the rest a softmax of what is left", () => {
  const made = hide(causal, none, new Set([0]));
  expect(rowsOf(made)).toEqual([
    [0, 0, 0],
    [0, 1, 0],
    [0, 0.6, 0.4],
  ]);
});

test("a hidden row looks at nothing", () => {
  expect(rowsOf(hide(causal, new Set([1]), none))[1]).toEqual([0, 0, 0]);
});

test("showing everything again gives back the very start", () => {
  expect(hide(causal, none, none)).toBe(causal);
});

test("nearly all mass on the hidden token still leaves exact rows", () => {
  const sharp = head([[1 - 3e-7, 1e-7, 2e-7]]);
  expect(rowsOf(hide(sharp, none, new Set([0])))[0]).toEqual([0, 0.33333, 0.66667]);
});

test("a row with a sink keeps the sink in the softmax", () => {
  // 0.2 + 0.4 and a sink of 0.4: without the first key 0.4 / (0.4 + 0.4).
  expect(rowsOf(hide(head([[0.2, 0.4]]), none, new Set([0])))[0]).toEqual([0, 0.5]);
});

test("rounded edges are square roots in 65535ths, and their place is found over uneven layers", () => {
  const grid = <T>(data: T, shape: number[]) => ({ data, shape });
  const edges: Edges = {
    input: 0,
    tower: "x",
    layers: [0, 3],
    heads: [1, 2],
    n: [1, 2],
    m: [2, 2],
    k: 1,
    index: grid(Uint16Array.of(0, 1, 1, 0, 1), [5, 1]),
    weight: grid(Uint16Array.of(65535, 0, 29308, 65535, 0), [5, 1]),
    rest: grid(Uint16Array.of(0, 0, 52428, 0, 0), [5]),
    row_sum: null,
    first_row: 0,
    first_column: 0,
    of: "weights",
    peak: null,
  };
  const made = fromEdges(edges, 1, 0);
  expect(weightAt(made, 1, 1)).toBeCloseTo(0.2);
  expect(made.rest[1]).toBeCloseTo(0.8);
  expect([...dense(fromEdges(edges, 1, 1))]).toEqual([1, 0, 0, 0]);
});

test("complete edges that were rounded are all there, the small ones too", () => {
  const sent = [1, 0, 0.9999, 0.0001].map((weight) => Math.round(65535 * Math.sqrt(weight)));
  const edges: Edges = {
    input: 0,
    tower: "x",
    layers: [0],
    heads: [1],
    n: [2],
    m: [2],
    k: 2,
    index: null,
    weight: { data: Uint16Array.from(sent), shape: [2, 2] },
    rest: { data: new Uint16Array(2), shape: [2] },
    row_sum: null,
    first_row: 0,
    first_column: 0,
    of: "weights",
    peak: null,
  };
  const made = fromEdges(edges, 0, 0);
  expect(made.k).toBe(made.m);
  expect(made.weight[0]).toBe(1);
  expect(made.weight[2]).toBeCloseTo(0.9999, 4);
  expect(Math.abs(made.weight[3] / 0.0001 - 1)).toBeLessThan(2e-3);
});

test("rounded contributions keep their signs, in steps of the largest of each row", () => {
  const rows = [
    [2.5, -0.0004],
    [0.003, -0.002],
    [0, 0],
  ];
  const peak = [2.5, 0.003, 0];
  const root = (value: number, row: number) =>
    Math.sign(value) * Math.round(32767 * Math.sqrt(Math.abs(value) / (peak[row] || 1)));
  const edges: Edges = {
    input: 0,
    tower: "x",
    layers: [0],
    heads: [1],
    n: [3],
    m: [2],
    k: 2,
    index: null,
    weight: { data: Int16Array.from(rows.flatMap((row, at) => row.map((value) => root(value, at)))), shape: [3, 2] },
    rest: { data: new Float32Array(3), shape: [3] },
    row_sum: null,
    first_row: 0,
    first_column: 0,
    of: "contribution",
    peak: { data: Float32Array.from(peak), shape: [3] },
  };
  const made = fromEdges(edges, 0, 0);
  rows.forEach((row, at) =>
    row.forEach((value, column) => {
      // Half a step off the root is so much off the number; then it is a float32.
      const off = Math.sqrt(Math.abs(value) * peak[at]) / 32767 + (0.25 * peak[at]) / 32767 ** 2;
      expect(Math.abs(made.weight[at * 2 + column] - value)).toBeLessThanOrEqual(off + Math.abs(value) * 2 ** -22);
    }),
  );
  expect(made.sink.every((share) => share === 0)).toBe(true);
});

test("what is left out of a row of shares can be more than 1", () => {
  const edges: Edges = {
    input: 0,
    tower: "x",
    layers: [0],
    heads: [1],
    n: [1],
    m: [3],
    k: 1,
    index: { data: Uint16Array.of(2), shape: [1, 1] },
    weight: { data: Uint16Array.of(65535), shape: [1, 1] },
    rest: { data: Float32Array.of(1.75), shape: [1] },
    row_sum: null,
    first_row: 0,
    first_column: 0,
    of: "moved",
    peak: { data: Float32Array.of(1.5), shape: [1] },
  };
  const made = fromEdges(edges, 0, 0);
  expect([weightAt(made, 0, 2), weightAt(made, 0, 1), made.rest[0]]).toEqual([1.5, null, 1.75]);
});

test("whole edges padded for wider layers are cut to their own keys", () => {
  const edges: Edges = {
    input: 0,
    tower: "x",
    layers: [0],
    heads: [1],
    n: [2],
    m: [2],
    k: 3,
    index: null,
    weight: { data: Float32Array.of(1, 0, 0, 0.25, 0.75, 0), shape: [2, 3] },
    rest: { data: new Uint16Array(2), shape: [2] },
    row_sum: null,
    first_row: 0,
    first_column: 0,
    of: "weights",
    peak: null,
  };
  expect(rowsOf(fromEdges(edges, 0, 0))).toEqual([
    [1, 0],
    [0.25, 0.75],
  ]);
});

test("with nothing sifted, lines are the rows themselves and carry all there is", () => {
  const whole = head([
    [0.5, 0.25, 0],
    [0, 0.5, 0.5],
  ]);
  const open = linesOf(whole, everything);
  const sifted = linesOf(whole, { ...everything, threshold: 1e-9 });
  const told = (lines: typeof open) =>
    Array.from({ length: lines.count }, (_, at) => [lines.from[at], lines.to[at], lines.weight[at]]).filter(
      ([, , weight]) => weight > 0,
    );
  expect(told(open)).toEqual(told(sifted));
  expect([open.drawn, open.total]).toEqual([sifted.drawn, sifted.total]);
  expect(open.weight).toBe(whole.weight);
});

test("threshold and top-k say how much of the attention they draw", () => {
  const lines = linesOf(causal, { ...everything, threshold: 0.25 });
  expect(lines.count).toBe(4);
  expect(lines.drawn / lines.total).toBeCloseTo((1 + 0.9 + 0.5 + 0.3) / 3);
  const top = linesOf(causal, { ...everything, topk: 1 });
  expect([...top.to.subarray(0, top.count)]).toEqual([0, 0, 0]);
  expect(share(top.drawn, top.total)).toBe("80 %");
});

test("the sentence filter keeps rows and columns of its sides", () => {
  const segment = (at: number) => Number(at > 0);
  const lines = linesOf(causal, { ...everything, filter: "ba", rowSegment: segment, columnSegment: segment });
  expect([...lines.from.subarray(0, lines.count)]).toEqual([1, 2]);
  expect(lines.drawn).toBeCloseTo(1.4);
  expect(lines.total).toBeCloseTo(2);
});

test("the lines of one token, from either side", () => {
  const lines = linesOf(causal, everything);
  expect(linesOfTokens(lines, "query", [2]).count).toBe(3);
  expect([...linesOfTokens(lines, "key", [1]).from]).toEqual([1, 2]);
});

test("words sum over what is looked at and average over what looks", () => {
  const units = unitsOf([token("un", { word: 0 }), token("do", { word: 0 }), token("it", { word: 1 })], true);
  expect(units.map((unit) => unit.text)).toEqual(["undo", "it"]);
  const made = mergeWords(causal, units, units, none);
  expect(rowsOf(made)).toEqual([
    [1, 0],
    [0.8, 0.2],
  ]);
  expect(unitsOf([token("[SEP]", { special: true, word: 0 }), token("a", { word: 0 })], true)).toHaveLength(2);
});

test("weighing by values scales by length and keeps each row's sum", () => {
  expect([...rowNorms(Float32Array.of(3, 4, 0, 1), 2)]).toEqual([5, 1]);
  expect(rowsOf(byNorm(head([[0.5, 0.5]]), Float32Array.of(3, 1)))).toEqual([[0.75, 0.25]]);
});

test("partners are read along a row and down a column", () => {
  expect([...partners(causal, "query", 2)].map((x) => Number(x.toFixed(2)))).toEqual([0.5, 0.3, 0.2]);
  expect([...partners(causal, "key", 0)].map((x) => Number(x.toFixed(2)))).toEqual([1, 0.9, 0.5]);
  const [first] = ranked([Float32Array.of(0.2, 0), Float32Array.of(0.6, 0)], 5);
  expect(first).toMatchObject({ at: 0, head: 1 });
  expect(first.mean).toBeCloseTo(0.4);
});

test("tokens of two inputs answer each other, also where one was replaced", () => {
  const [a, b] = ["the nurse said she was".split(" "), "the nurse said he was".split(" ")];
  expect(align(a, b)).toEqual([
    [0, 0],
    [1, 1],
    [2, 2],
    [3, 3],
    [4, 4],
  ]);
  expect(align(["a", "b", "c"], ["a", "x", "y", "c"])).toEqual([
    [0, 0],
    [2, 3],
  ]);
  const units = (texts: string[]) =>
    unitsOf(
      texts.map((text) => token(text)),
      false,
    );
  expect(unitsBoth(units(a), units(b), align(a, b))[3].text).toBe("she → he");
});

test("the difference is second minus first", () => {
  const pairs = [
    [0, 0],
    [1, 1],
  ] as const;
  const made = difference(
    head([
      [1, 0],
      [0.5, 0.5],
    ]),
    head([
      [1, 0],
      [0.2, 0.8],
    ]),
    [...pairs],
    [...pairs],
  );
  expect(rowsOf(made)).toEqual([
    [0, 0],
    [-0.3, 0.3],
  ]);
});

const changed = (): HeadRows =>
  difference(
    head([[0.9, 0.1]]),
    head([[0.5, 0.5]]),
    [[0, 0]],
    [
      [0, 0],
      [1, 1],
    ],
  );

test("what became weaker is read from either side, and with its sign", () => {
  expect(weightAt(changed(), 0, 0)).toBeCloseTo(-0.4);
  expect(partners(changed(), "query", 0)[0]).toBeCloseTo(-0.4);
  expect(partners(changed(), "key", 0)[0]).toBeCloseTo(-0.4);
  expect(number(weightAt(changed(), 0, 0) ?? NaN, true)).toBe("−0.400");
  expect(number(0, true)).toBe("0.000");
});

test("all weights of a difference stay what they are after heads of many other sizes were seen", () => {
  const made = changed();
  for (let size = 2; size < 40; size++) head([Array.from({ length: size }, () => 1 / size)]);
  expect([...dense(made)].map((weight) => Number(weight.toFixed(3)))).toEqual([-0.4, 0.4]);
});

test("a key that was not sent is unknown, one that was hidden is zero, and padding covers neither", () => {
  const cut: HeadRows = {
    n: 2,
    m: 3,
    k: 2,
    whole: false,
    index: Uint16Array.of(0, 2, 0, 0),
    weight: Float32Array.of(0.6, 0.3, 1, 0),
    rest: Float32Array.of(0.1, 0),
    sink: new Float32Array(2),
  };
  expect(weightAt(cut, 0, 1)).toBeNull();
  expect(mostLeftOut(cut, 0)).toBeCloseTo(0.1);
  expect(weightText(cut, 0, 1)).toBe("at most 0.100");
  expect(weightAt(hide(cut, none, new Set([2])), 0, 2)).toBe(0);
  expect(weightAt(cut, 1, 0)).toBe(1);
  expect(weightAt(cut, 1, 1)).toBe(0);
  expect([...dense(cut)].map((weight) => Number(weight.toFixed(3)))).toEqual([0.6, 0, 0.3, 1, 0, 0]);
});

const vectors = (more: Partial<Vectors> = {}): Vectors => ({
  input: 0,
  head: "L0H0",
  scale: 0.5,
  softcap: null,
  sink: null,
  mask: "causal",
  shared: [],
  added: null,
  seen: null,
  value: null,
  query: { data: Float32Array.of(1, 0, 2, 0), shape: [2, 2] },
  key: { data: Float32Array.of(1, 5, Math.LN2 + 1, 7), shape: [2, 2] },
  ...more,
});

test("a row is traced from dot product to softmax", () => {
  const made = trace(vectors(), 1, none);
  expect([...made.logit].map((x) => Number(x.toFixed(4)))).toEqual([1, 1.6931]);
  expect(made.weight[1]).toBeCloseTo(2 / 3);
  expect([...trace(vectors(), 0, none).weight]).toEqual([1, 0]);
});

test("a sink, a bias and a hidden key take part as the model has them", () => {
  expect(trace(vectors({ sink: 1 }), 1, none).weight[0]).toBeCloseTo(1 / 4);
  expect(
    trace(vectors({ added: { data: Float32Array.of(Math.LN2, 0), shape: [1, 2] } }), 1, none).weight[0],
  ).toBeCloseTo(1 / 2);
  expect([...trace(vectors(), 1, new Set([1])).weight]).toEqual([1, 0]);
});

test("the neuron that lifts the attended key comes first", () => {
  const own = vectors({
    query: { data: Float32Array.of(1, 1), shape: [1, 2] },
    key: { data: Float32Array.of(0, 3, 9, 0), shape: [2, 2] },
    mask: "full",
  });
  expect([...byContribution(own, 0, trace(own, 0, none), null)]).toEqual([0, 1]);
  expect([...byContribution(own, 0, trace(own, 0, none), 0)]).toEqual([1, 0]);
});
