// What can be done by name? The commands of the palette, from the tables of the keys, the tabs and the atlas.
import { EVERYWHERE, waysOf, type Frame, type Key } from "./keys";
import type { Desk } from "./desk.svelte";
import { headName } from "./picks";
import { tabsOf } from "./tab";

export interface Command {
  /** What it is about: the word before its text. */
  group: string;
  text: string;
  /** The key that does the same. */
  key?: string;
  act(desk: Desk, frame: Frame): unknown;
}

/** Keys that move from where one is; by name they mean little. */
const MOVES = /^Arrow|Enter|Escape/;

const ofKey = (group: string, key: Key): Command => ({ group, text: key.does, key: key.shown, act: key.act });

/** List every command of this page as it is now. */
export function commandsOf(desk: Desk): Command[] {
  const tabs = tabsOf(desk);
  return [
    ...tabs.map((tab): Command => ({
      group: "Tab",
      text: `${tab.title}: ${tab.about}`,
      key: tab.ways?.length === 1 ? tab.ways[0].shown : undefined,
      act: (desk) => desk.setTab(tab.name),
    })),
    ...waysOf(desk)
      .filter((way) => tabs.every((tab) => tab.ways?.length !== 1 || tab.ways[0] !== way))
      .map((way) => ofKey("View", way)),
    ...tabs.flatMap((tab) => tab.commands?.(desk) ?? []),
    ...framed(desk),
    ...EVERYWHERE.filter(({ key }) => !MOVES.test(key)).map((key) => ofKey("Do", key)),
    ...(desk.tab.keys ?? []).flatMap((key) => ("key" in key ? [ofKey(desk.tab.title, key)] : [])),
    ...heads(desk),
    ...desk.about.inputs.map(({ number, label }): Command => ({
      group: "Input",
      text: label,
      act: (desk) => desk.setInput(number),
    })),
  ];
}

/** What the frame around the panel can do. */
function framed(desk: Desk): Command[] {
  const themes = ["light", "dark", "auto"] as const;
  return [
    ...themes.map((theme): Command => ({
      group: "Theme",
      text: theme === "auto" ? "as the system has it" : theme,
      act: (desk) => (desk.picks.theme = theme),
    })),
    { group: "Colours", text: "for colour-blind people", act: (desk) => (desk.picks.palette = "safe") },
    { group: "Colours", text: "green and pink", act: (desk) => (desk.picks.palette = "default") },
    { group: "Export", text: "SVG (for papers)", act: (_desk, frame) => frame.save("svg") },
    { group: "Export", text: "PNG (for slides)", act: (_desk, frame) => frame.save("png") },
    ...(desk.chrome === "page"
      ? [{ group: "Share", text: "copy a link to this view", act: (_: Desk, frame: Frame) => frame.share() }]
      : []),
    ...desk.guide.steps.map((step, at): Command => ({
      group: "Story",
      text: `step ${at + 1}: ${step.title}`,
      act: (desk) => desk.guide.go(at),
    })),
    ...desk.about.atlases.map(({ address, title }): Command => ({
      group: "Atlas",
      text: title,
      act: () => location.assign(address),
    })),
  ];
}

const heads = (desk: Desk): Command[] =>
  desk.about.towers.flatMap((tower) =>
    tower.layers.flatMap(({ layer, heads: count }) =>
      Array.from({ length: count }, (_, head): Command => {
        const name = headName(desk.about, tower.name, layer, head);
        return { group: "Head", text: name, act: (desk) => desk.setPicks({ heads: [name] }) };
      }),
    ),
  );
