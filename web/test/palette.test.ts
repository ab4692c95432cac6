import { expect, test, vi } from "vitest";
import { commandsOf } from "../src/desk/command";
import { Desk } from "../src/desk/desk.svelte";
import { fit, ranked } from "../src/desk/fuzzy";
import { grouped, pressed, type Frame, type Key } from "../src/desk/keys";
import { TABS } from "../src/panels/tabs";
import type { Source } from "../src/source/source";
import type { About } from "../src/source/wire";
import { about, tab } from "./fixtures";

const memory = new Map<string, string>();
vi.stubGlobal("localStorage", {
  getItem: (name: string) => memory.get(name) ?? null,
  setItem: (name: string, value: string) => memory.set(name, value),
});
const source = { live: true, get: () => new Promise(() => {}), ask: () => new Promise(() => {}) } as unknown as Source;
const frame = { save: vi.fn(), share: vi.fn(), listKeys: vi.fn() } as unknown as Frame;

function deskOf(more: Partial<About> = {}, tabs = TABS, fresh = false): Desk {
  const desk = new Desk(source, { ...about(), ...more }, "page", {}, tabs, fresh);
  desk.one = { rowUnits: [], columnUnits: [] } as never;
  desk.map = {} as never;
  desk.lab = { on: false } as never;
  return desk;
}
const find = (desk: Desk, typed: string) =>
  ranked(typed, commandsOf(desk), ({ group, text }) => `${group}: ${text}`, 60)[0];

test("letters fit in their order, at the start of words best", () => {
  expect(fit("l3h2", "Head: L3H2")).not.toBeNull();
  expect(fit("hl", "Lh")).toBeNull();
  const best = ranked("dk", ["undark", "Theme: dark", "dusk kept"], (text) => text, 9);
  expect(best[0]).toBe("dusk kept");
  // A word that was begun is meant, not a sentence whose words begin with its letters.
  const begun = ranked("pos", ["Input: people over seas", "Colour: position"], (text) => text, 9);
  expect(begun[0]).toBe("Colour: position");
  expect(ranked("", ["b", "a"], (text) => text, 9)).toEqual(["b", "a"]);
});

test("heads, tabs, inputs, themes and exports are found by their names and do what they say", () => {
  const desk = deskOf();
  find(desk, "L2H1")?.act(desk, frame);
  expect(desk.picks.heads).toEqual(["L2H1"]);
  find(desk, "dark")?.act(desk, frame);
  expect(desk.picks.theme).toBe("dark");
  find(desk, "heat-map view")?.act(desk, frame);
  expect(desk.snapshot()).toMatchObject({ tab: "text", view: "heat" });
  find(desk, "lab")?.act(desk, frame);
  expect(desk.tab.name).toBe("lab");
  find(desk, "input: b")?.act(desk, frame);
  expect(desk.picks.input).toBe(1);
  find(desk, "svg")?.act(desk, frame);
  expect(frame.save).toHaveBeenCalledWith("svg");
});

test("a new tab brings its commands", () => {
  const counted = vi.fn();
  const words = tab("words", { title: "Words", commands: () => [{ group: "Words", text: "count", act: counted }] });
  const desk = deskOf({}, [...TABS, words]);
  find(desk, "words count")?.act(desk, frame);
  expect(counted).toHaveBeenCalled();
});

test("every key with an action that is listed is one that the page has, on the tab where it is listed", () => {
  const desk = deskOf({ pictures: true, can_measure: true, can_compute: true });
  const tabs = new Map(TABS.map((each) => [each.title, each]));
  for (const { title, keys } of grouped(desk))
    for (const key of keys) {
      if (!("key" in key)) continue;
      const act = vi.spyOn(key as Key, "act").mockImplementation(() => {});
      desk.picks.tab = tabs.get(title)?.name ?? desk.picks.tab;
      expect(pressed(desk, { key: key.key } as KeyboardEvent, frame), key.shown).toBe(true);
      expect(act, key.shown).toHaveBeenCalledOnce();
      act.mockRestore();
    }
});

const story = [
  { title: "One", text: "a", picks: "tab=text&view=model" },
  { title: "Two", text: "b", picks: "tab=text&heads=L2H1&input=1" },
];

test("a story starts on a fresh visit, is left, and goes on where it was", () => {
  memory.clear();
  const desk = deskOf({ story }, TABS, true);
  expect(desk.snapshot()).toMatchObject({ tab: "text", view: "model" });
  desk.guide.next();
  expect(desk.snapshot()).toMatchObject({ view: "head", heads: ["L2H1"], input: 1, layer: 2 });
  desk.guide.leave();
  desk.setTab("lab");
  const later = deskOf({ story }, TABS, true);
  expect([later.guide.telling, later.guide.at]).toEqual([false, 1]);
  later.guide.next();
  expect(later.snapshot()).toMatchObject({ tab: "text", heads: ["L2H1"] });
  later.guide.next();
  expect([later.guide.telling, later.guide.at]).toEqual([false, 0]);
});

test("on another tab the story waits, and goes on with the step it was at", () => {
  memory.clear();
  const desk = deskOf({ story }, TABS, true);
  desk.guide.next();
  desk.setTab("lab");
  expect(desk.guide.step).toBeUndefined();
  desk.guide.next();
  expect([desk.guide.at, desk.picks.tab]).toEqual([1, "text"]);
  expect(desk.guide.step).toEqual(story[1]);
});

test("a link to a state is not moved by the story, and no story means hints", () => {
  memory.clear();
  expect(deskOf({ story }, TABS, false).guide.telling).toBe(false);
  expect(deskOf({ story }).guide.hinting).toBe(false);
  expect(deskOf().guide.hinting).toBe(true);
});
