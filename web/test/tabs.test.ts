import { readdirSync, readFileSync } from "node:fs";
import { render } from "svelte/server";
import { expect, test, vi } from "vitest";
import { Desk } from "../src/desk/desk.svelte";
import { listed, pressed, type Frame } from "../src/desk/keys";
import type { Tab } from "../src/desk/tab";
import Hints from "../src/frame/Hints.svelte";
import KeyList from "../src/frame/KeyList.svelte";
import StatusBar from "../src/frame/StatusBar.svelte";
import TopBar from "../src/frame/TopBar.svelte";
import { TABS } from "../src/panels/tabs";
import type { Source } from "../src/source/source";
import { about, tab } from "./fixtures";

vi.stubGlobal("localStorage", { getItem: () => null });

const frame: Frame = {
  focusControl: () => {},
  listKeys: () => {},
  editHere: () => {},
  listCommands: () => {},
  press: () => {},
  save: () => {},
  share: () => {},
};
const source = { live: true, get: () => new Promise(() => {}), ask: () => new Promise(() => {}) } as unknown as Source;
const press = (desk: Desk, key: string) => pressed(desk, { key } as KeyboardEvent, frame);

/** A desk as the frame has it, though nothing is ever answered. */
function deskOf(tabs: readonly Tab[], more: Partial<ReturnType<typeof about>> = {}, name?: string): Desk {
  const desk = new Desk(source, { ...about(), ...more }, "page", { tab: name }, tabs);
  desk.one = { rowUnits: [], columnUnits: [] } as never;
  desk.map = {} as never;
  desk.lab = { on: false } as never;
  return desk;
}

let undone = 0;
const words = tab("words", {
  title: "Words",
  about: "how often each word is there",
  hints: [{ lead: "Point at a word", text: "to count it." }],
  status: () => [{ name: "words", text: "12 words" }],
  legend: "most frequent first",
  keys: [{ key: "c", shown: "c", does: "count again", act: () => (undone += 1) }],
  ways: [{ key: "g", shown: "g", does: "the words", act: (desk) => desk.setTab("words") }],
  undo: ["search"],
});

test("a new tab is a line in the table: bar, hints, status and keys know it", () => {
  const desk = deskOf([...TABS, words]);
  expect(press(desk, "c")).toBe(false);
  expect(press(desk, "g")).toBe(true);
  expect(desk.tab).toBe(words);
  press(desk, "c");
  expect(undone).toBe(1);
  const props = { desk, width: 1440, narrow: false, crowded: false, left: true, right: true, frame };
  expect(render(TopBar, { props }).body).toMatch(/data-testid="tab-words"[^>]*>Words/);
  expect(render(Hints, { props: { desk } }).body).toContain("Point at a word");
  const status = render(StatusBar, { props: { desk } }).body;
  expect(status).toContain("12 words");
  expect(status).toContain("most frequent first");
  const keys = render(KeyList, { props: { desk, close: () => {} } }).body;
  expect(keys).toContain("count again");
  expect(keys).toContain("the words");
});

test("undo brings back what the new tab says, and an address may name it", () => {
  const desk = deskOf([...TABS, words], {}, "words");
  expect(desk.tab).toBe(words);
  desk.sieve({ search: "cat" });
  desk.undo();
  expect(desk.picks.search).toBe("");
  desk.redo();
  expect(desk.snapshot()).toMatchObject({ tab: "words", search: "cat" });
  expect(deskOf(TABS, {}, "words").tab.name).toBe("text");
});

test("a page opens on the map where there is one, on a picture, else on the text", () => {
  const maps = [{ name: "pca-2d", groups: [] }] as never;
  expect(deskOf(TABS).tab.name).toBe("text");
  expect(deskOf(TABS, { pictures: true }).tab.name).toBe("image");
  expect(deskOf(TABS, { pictures: true, maps }).tab.name).toBe("map");
});

test("the map and a picture show one head, and hand it on to each other", () => {
  const maps = [{ name: "pca-2d", groups: [] }] as never;
  const desk = deskOf(TABS, { pictures: true, maps }, "text");
  expect(desk.picks.heads).toEqual(["L0H0", "L0H1"]);
  desk.setTab("image");
  expect(desk.picks.heads).toEqual(["L0H0"]);
  desk.setLayer(2);
  expect(desk.picks.heads).toEqual(["L2H0"]);
  desk.setPicks({ tab: "map", mapHead: "L2H2" });
  expect([desk.focus, desk.place.layer, desk.mapHead]).toEqual(["L2H2", 2, "L2H2"]);
  desk.setTab("text");
  desk.allHeads();
  expect(desk.snapshot()).toMatchObject({ layer: 2, heads: ["L2H0", "L2H1", "L2H2"], mapHead: "L2H0" });
  desk.setTab("map");
  expect(desk.picks.heads).toEqual(["L2H0"]);
});

test("no key has two meanings on one tab, and each is listed once", () => {
  const desk = deskOf(TABS, { pictures: true, can_measure: true, can_compute: true });
  const own = TABS.flatMap((one) => [...(one.keys ?? []), ...(one.ways ?? [])]).map((key) => key.shown);
  const shown = listed(desk).map((key) => key.shown);
  expect(new Set(shown).size).toBe(shown.length);
  expect(shown).toEqual(expect.arrayContaining(own));
});

test("neither the frame nor the desk asks for a tab's name", () => {
  for (const folder of ["frame", "desk"])
    for (const file of readdirSync(`src/${folder}`)) {
      const code = readFileSync(`src/${folder}/${file}`, "utf8");
      expect(code, file).not.toMatch(/\btab(\.name)? [!=]==? "|"(map|text|image|heads)" [!=]==? /);
      expect(code, file).not.toMatch(/from "\.\.\/panels/);
    }
});
