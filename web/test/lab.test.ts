import { expect, test } from "vitest";
import { fromHash, START, toHash } from "../src/desk/picks";
import { asked, editOf, headsIn, START_DRAFT, type Draft } from "../src/lab/draft";
import { dialOf, hasOn, inForce, readEdits, turned, withEdit, withoutEdit, type Edit } from "../src/lab/edits";
import { offersFor, type Thing } from "../src/lab/offers";
import { inOrder, parted, percent, verdict } from "../src/lab/says";
import { listed, sentence, type Names } from "../src/lab/sentences";
import { everyHead, layerNamed, together } from "../src/lab/thing";
import { about } from "./fixtures";

const TEXT = ["The", "doctor", "asked", "the", "nurse", "a", "question", ".", "She"];
const names: Names = {
  token: (_side, position) => `“${TEXT[position]}” (${position})`,
  input: (number) => `“input ${number}”`,
};
const ablate: Edit = { edit: "ablate", heads: ["L4H5"], by: "zero" };
const half: Edit = { edit: "scale", heads: ["L4H5"], by: 0.5 };
const hide: Edit = { edit: "mask", heads: ["L3H2"], inputs: [7], tokens: [4] };

test.each<[Edit, string]>([
  [ablate, "Take L4H5 out"],
  [{ ...ablate, by: "mean" }, "Take L4H5 out; its mean over other inputs instead"],
  [{ ...ablate, heads: ["L4"], positions: [8] }, "Take layer 4 out, only at “She” (8)"],
  [half, "Multiply what L4H5 moves by 0.5"],
  [hide, "Hide “nurse” (4) from L3H2"],
  [{ edit: "mask", heads: ["all"], edges: [[8, 4]] }, "Cut the line “She” (8) → “nurse” (4) in every head"],
  [{ edit: "pattern", heads: ["L0H1", "L0H2"], pattern: "even" }, "L0H1 and L0H2 look evenly at all tokens"],
  [
    { edit: "pattern", heads: ["L0H1"], pattern: "window", sink: 1, recent: 4 },
    "L0H1 looks at the first 1 and the last 4 tokens",
  ],
  [
    { edit: "neuron", heads: ["L3H2"], side: "key", index: [12], value: -1.5, positions: [4] },
    "Set neuron 12 of the key of L3H2 to −1.5, only at “nurse” (4)",
  ],
  [{ edit: "patch", heads: ["L3H2"], what: "pattern", from: [3] }, "L3H2 takes its pattern from “input 3”"],
  [{ edit: "patch", heads: ["L3H2"], what: "output", from: ["He left."] }, "L3H2 moves what it moves on “He left.”"],
])("an edit is one plain sentence: %o", (edit, words) => {
  expect(sentence(edit, names)).toBe(words);
});

test("long lists of names are cut, and say how many more there are", () => {
  expect(listed(["a", "b", "c"])).toBe("a, b and c");
  expect(listed(["a", "b", "c", "d", "e"])).toBe("a, b and 3 more");
});

test("the same edit is in the list once; its number is taken over, and it is switched on", () => {
  const lines = withEdit(withEdit([], ablate), half);
  expect(lines).toHaveLength(2);
  const off = lines.map((line) => ({ ...line, on: false }));
  const double = turned(half, dialOf(half)!, 2);
  expect(withEdit(off, double)).toEqual([
    { on: false, edit: ablate },
    { on: true, edit: double },
  ]);
  expect(hasOn(lines, half)).toBe(true);
  expect(hasOn(lines, double)).toBe(false);
  expect(hasOn(off, half)).toBe(false);
  expect(withoutEdit(lines, { by: "zero", heads: ["L4H5"], edit: "ablate" })).toEqual([{ on: true, edit: half }]);
});

test("what is sent is switched on and fits the input; which inputs it was made for is left out", () => {
  const lines = [
    { on: true, edit: hide },
    { on: false, edit: half },
    { on: true, edit: ablate },
  ];
  expect(inForce(lines, 7)).toEqual([{ edit: "mask", heads: ["L3H2"], tokens: [4] }, ablate]);
  expect(inForce(lines, 1)).toEqual([ablate]);
});

test("a slider has the number of a scale or a neuron, within its ends", () => {
  expect(dialOf(half)).toEqual({ field: "by", value: 0.5, least: 0, most: 3 });
  expect(dialOf({ ...half, by: -4.5 })).toMatchObject({ least: -5, most: 3 });
  expect(dialOf({ edit: "neuron", heads: ["L0H0"], side: "key", index: [1], scale: 2 })?.field).toBe("scale");
  expect(dialOf(ablate)).toBeNull();
});

test("a link brings the edits back, apostrophes and all; anything else is refused", () => {
  const edits = [
    { on: true, edit: hide },
    { on: false, edit: { edit: "patch", heads: ["L1H0"], what: "output", from: ["the nurse's “friend” & 100 %"] } },
  ];
  const picks = { ...START, edits, labView: "difference" as const, labAt: 5 };
  expect(fromHash(`#${toHash(picks)}`)).toMatchObject({ edits, labView: "difference", labAt: 5 });
  expect(readEdits([{ on: true, edit: { edit: "evil", heads: ["L0H0"] } }])).toBeUndefined();
  expect(readEdits([{ on: true, edit: { ...ablate, heads: ["<b>"] } }])).toBeUndefined();
  expect(readEdits([{ on: true, edit: { ...ablate, positions: "all" } }])).toBeUndefined();
  expect(readEdits([{ on: 1, edit: ablate }])).toBeUndefined();
  expect(fromHash("#edits=[{'on':true}]&labView=later")).toEqual({});
});

const head: Thing = { heads: ["L3H2"], every: ["all"], input: 7 };
const titles = (thing: Thing) => offersFor(thing, names).map(({ title }) => title);

test("a head is offered what can be done to a head", () => {
  expect(titles(head)).toEqual([
    "Take L3H2 out",
    "Halve L3H2",
    "Double L3H2",
    "Even attention in L3H2",
    "Only the previous token in L3H2",
  ]);
  expect(offersFor(head, names).every(({ edit }) => edit.inputs === undefined)).toBe(true);
});

test("a token that is looked at can be hidden, from this head or from all", () => {
  const thing: Thing = { ...head, token: { side: "key", positions: [4] } };
  expect(titles(thing).slice(0, 2)).toEqual(["Hide “nurse” (4) from L3H2", "Hide “nurse” (4) from every head"]);
  expect(offersFor(thing, names)[0].edit).toEqual(hide);
});

test("a token that looks is offered what its row can do", () => {
  const thing: Thing = { ...head, token: { side: "query", positions: [8] } };
  expect(titles(thing).slice(0, 2)).toEqual([
    "Take L3H2 out, only at “She” (8)",
    "L3H2 looks evenly at all tokens, only at “She” (8)",
  ]);
});

test("a line is cut first, then its tokens; of merged words every pair", () => {
  const thing: Thing = { ...head, line: { query: [8], key: [3, 4] } };
  const [cut, everywhere] = offersFor(thing, names);
  expect(cut.title).toBe("Cut the lines “She” (8) → “the” (3) and “She” (8) → “nurse” (4) in L3H2");
  expect(cut.edit.edges).toEqual([
    [8, 3],
    [8, 4],
  ]);
  expect(everywhere.edit.heads).toEqual(["all"]);
  expect(titles(thing)).toContain("Hide “the” (3) and “nurse” (4) from L3H2");
});

test("a neuron is set or multiplied, at its token or everywhere", () => {
  const thing: Thing = { ...head, neuron: { side: "key", index: 12, position: 4 } };
  expect(titles(thing).slice(0, 3)).toEqual([
    "Set neuron 12 of the key of L3H2 to 0, only at “nurse” (4)",
    "Set neuron 12 of the key of L3H2 to 0",
    "Multiply neuron 12 of the key of L3H2 by 2, only at “nurse” (4)",
  ]);
});

test("every head means those that look at the same tokens", () => {
  const two = about(["encoder", "cross"]);
  two.towers[1] = {
    ...two.towers[1],
    layers: two.towers[1].layers.map((layer) => ({ ...layer, keys: "picture" })),
  };
  expect(everyHead(about(), { queries: "text", keys: "text" })).toEqual(["all"]);
  expect(everyHead(two, { queries: "text", keys: "picture" })).toEqual(["cross.L0", "cross.L2"]);
  expect(layerNamed(two, "cross.L2")).toMatchObject({ layer: 2, keys: "picture" });
  expect(together(["L0H0", "L0H1"], layerNamed(about(), "L0H0"))).toEqual(["L0"]);
  expect(together(["L2H1"], layerNamed(about(), "L2H1"))).toEqual(["L2H1"]);
});

const draft = (more: Partial<Draft>): Draft => ({ ...START_DRAFT, heads: "L4H5", ...more });

test.each<[Partial<Draft>, Edit]>([
  [{}, ablate],
  [
    { position: 8, by: "mean" },
    { edit: "ablate", heads: ["L4H5"], by: "mean", inputs: [7], positions: [8] },
  ],
  [{ kind: "scale" }, half],
  [{ kind: "token", token: 4, heads: "l3h2" }, hide],
  [
    { kind: "line", query: 8, token: 4, heads: "all" },
    { edit: "mask", heads: ["all"], inputs: [7], edges: [[8, 4]] },
  ],
  [
    { kind: "pattern", pattern: "window" },
    { edit: "pattern", heads: ["L4H5"], pattern: "window", sink: 1, recent: 4 },
  ],
  [
    { kind: "neuron", how: "multiply", value: 3 },
    { edit: "neuron", heads: ["L4H5"], side: "key", index: [0], scale: 3 },
  ],
  [
    { kind: "patch", from: 3, align: [[0, 1]] },
    { edit: "patch", heads: ["L4H5"], inputs: [7], what: "output", from: [3], align: [[0, 1]] },
  ],
])("the form makes an edit: %o", (more, edit) => {
  expect(editOf(draft(more), 7)).toEqual(edit);
});

test("a form that lacks something says what", () => {
  expect(editOf(draft({ heads: "5.1" }), 0)).toBe("name heads as in L4H5, a layer as in L4, or say all");
  expect(editOf(draft({ kind: "patch" }), 0)).toBe("choose another input to take it from");
  expect(editOf(draft({ kind: "scale", times: NaN }), 0)).toBe("write a number");
  expect(headsIn("l4h5, cross.L3 L0H10")).toEqual(["L4H5", "cross.L3", "L0H10"]);
  expect(asked(draft({ kind: "pattern" }), "sink")).toBe(false);
});

const guess = (id: number, text: string, before: number, after: number) => ({ id, text, before, after });

test("bars keep the order of before, so that they stay in place while edits change", () => {
  const tokens = [guess(1, "he", 0.1, 0.6), guess(2, "she", 0.5, 0.2), guess(3, "it", 0.2, 0.1)];
  expect(inOrder(tokens).map(({ id }) => id)).toEqual([2, 3, 1]);
  expect(verdict(tokens)).toBe("The likeliest was “she” (50.0 %) and is now “he” (60.0 %).");
  expect(verdict([guess(2, "she", 0.5, 0.45), guess(1, "he", 0.1, 0.2)])).toBe(
    "“she” stays the likeliest. Most changed: “he”, 10.0 % → 20.0 %.",
  );
  expect(verdict([guess(2, "·she", 0.5, 0.25)])).toBe("“she” stays the likeliest and changes most: 50.0 % → 25.0 %.");
  expect(verdict([guess(2, "she", 0.5, 0.5)])).toContain("nothing changes");
  expect(percent(0.0004)).toBe("<0.1 %");
});

test("faint tokens have no bars, but the likeliest before and after always do", () => {
  const faint = Array.from({ length: 30 }, (_, id) => guess(id, "x", (30 - id) / 1e5, id / 1e5));
  expect(inOrder(faint).map(({ id }) => id)).toEqual([0, 1, 2, 3, 26, 27, 28, 29]);
  expect(inOrder([...faint, guess(99, "y", 0.01, 0)])[0].id).toBe(99);
});

test("written texts part where they differ, counted in characters", () => {
  expect(parted("🙂 and so", 6)).toEqual([
    { text: "🙂 and ", new: false },
    { text: "so", new: true },
  ]);
  expect(parted("same", 4)).toEqual([{ text: "same", new: false }]);
});
