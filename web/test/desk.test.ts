import { expect, test } from "vitest";
import { History } from "../src/desk/history";
import {
  fitting as chosen,
  fromHash,
  headName,
  headPlace,
  picksOf,
  START,
  toHash,
  type Picks,
} from "../src/desk/picks";
import { positionsOf } from "../src/desk/tokens";
import { about, tab, token } from "./fixtures";

const TABS = {
  text: tab("text"),
  map: tab("map", { alone: (picks) => picks.mapHead }),
  image: tab("image", { alone: (picks) => picks.heads[0] }),
};

/** Through the desk and back: what it holds, as an address has it. */
const fitting = (picks: Partial<Picks>, atlas = about()): Picks =>
  picksOf(chosen(picks, atlas, TABS[(picks.tab ?? "text") as keyof typeof TABS]), atlas);

test("an address brings every pick back", () => {
  const picks = fitting({
    input: 1,
    other: 0,
    heads: ["L2H1"],
    token: { side: "key", position: 7 },
    pinned: true,
    view: "heat",
    hidden: { text: [0, 4] },
    filter: "ab",
    threshold: 0.05,
    topk: 3,
    words: true,
    theme: "dark",
    sort: true,
    valueWeighted: true,
    shownLayers: [2],
  });
  expect(fitting(fromHash(`#${toHash(picks)}`))).toEqual(picks);
});

test("the start needs no address", () => {
  expect(toHash(START)).toBe("");
});

test("an address written by anyone cannot bring in what is not of its kind", () => {
  expect(fromHash("#view=evil&token={'side':'up'}&hidden={'text':['<b>']}&threshold=x&bogus=1&words=true")).toEqual({
    words: true,
  });
});

test("what does not exist falls back to what does", () => {
  const picks = fitting({ input: 9, layer: 1, heads: ["L1H7"], tower: "nowhere" });
  expect(picks).toMatchObject({ input: 0, layer: 0, heads: ["L0H0", "L0H1"], tower: "decoder" });
});

test("a head alone brings its layer and tower with it", () => {
  expect(fitting({ heads: ["cross.L2H1"] }, about(["encoder", "cross"]))).toMatchObject({
    tower: "cross",
    layer: 2,
    heads: ["cross.L2H1"],
  });
});

test("head names carry a tower only where there are several", () => {
  expect(headName(about(), "decoder", 3, 1)).toBe("L3H1");
  expect(headName(about(["encoder", "cross"]), "cross", 3, 1)).toBe("cross.L3H1");
  expect(headPlace(about(), "5.1")).toBeNull();
});

test("undo walks back, redo forth, and a new change forgets what was undone", () => {
  const history = new History<number>();
  history.keep(1);
  history.keep(2);
  expect(history.back(3)).toBe(2);
  expect(history.forth(2)).toBe(3);
  expect(history.back(3)).toBe(2);
  history.keep(7);
  expect(history.canForth).toBe(false);
});

test("tokens are hidden by what Python says that they are", () => {
  const tokens = [token("a"), token("·,", { punctuation: true }), token("[SEP]", { special: true })];
  expect(positionsOf(tokens, "punctuation")).toEqual([1]);
  expect(positionsOf(tokens, "special")).toEqual([2]);
  expect(positionsOf(tokens, "first")).toEqual([0]);
});

test("the head that fills the map is the picked head; close-ups may keep several", () => {
  expect(fitting({ tab: "map", mapHead: "L2H1", heads: ["L0H0", "L0H1"] })).toMatchObject({
    mapHead: "L2H1",
    heads: ["L2H1"],
    layer: 2,
  });
  // The map goes back into the head in focus.
  expect(fitting({ tab: "text", mapHead: "L2H1", heads: ["L0H0", "L0H1"] })).toMatchObject({
    mapHead: "L0H0",
    heads: ["L0H0", "L0H1"],
    layer: 0,
  });
  expect(fitting({ tab: "map", mapHead: "L9H9" }).mapHead).toBeNull();
});

test("a link holds the map: camera, search and head, and refuses what is no camera", () => {
  const picks = fitting({
    tab: "map",
    mapHead: "L2H1",
    search: "(a|b)&c",
    searchKind: "regex",
    camera: [1, 2.5, 0.5, 0.6, 0.45],
  });
  expect(fitting(fromHash(toHash(picks)))).toEqual(picks);
  expect(fromHash("camera=[1,2]&palette=loud&searchKind=magic")).toEqual({});
});

test("a picture shows one head, of the layer that is asked for", () => {
  expect(fitting({ tab: "image", heads: ["L2H1", "L2H2"] })).toMatchObject({ layer: 2, heads: ["L2H1"] });
  expect(fitting({ tab: "image", heads: ["L2H1"], layer: 0 })).toMatchObject({ layer: 0, heads: ["L0H0"] });
  expect(fitting({ tab: "image" }).heads).toEqual(["L0H0"]);
});

test("an address names the tab wherever a page would open on another one", () => {
  expect(toHash(START, "map")).toBe("tab=text");
  expect(toHash({ ...START, tab: "map" }, "map")).toBe("tab=map");
});
