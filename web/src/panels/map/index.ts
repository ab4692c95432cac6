// The Map tab: the queries and keys of every head as points.
import type { Command } from "../../desk/command";
import type { Desk } from "../../desk/desk.svelte";
import type { Tab } from "../../desk/tab";
import MapControls from "./MapControls.svelte";
import MapInspector from "./MapInspector.svelte";
import MapPanel from "./MapPanel.svelte";
import { TOKEN_KEYS } from "../../desk/keys";
import { choices } from "../../map/colouring";
import { MARKS, type Verdict } from "../../map/verdict";
import { COLUMN_KEYS } from "../parts/keys";
import { METHODS, took } from "./methods";
import { stepPoint } from "./step";

export const map: Tab = {
  name: "map",
  title: "Map",
  about: "queries and keys of every head as points",
  applies: (desk) => desk.about.maps.length > 0 || desk.about.can_compute,
  opens: (about, chrome) => about.maps.length > 0 && chrome === "page",
  inCell: (desk) => desk.about.maps.length > 0,
  closeUp: (desk) => desk.picks.inHead && desk.picks.pinned,
  panel: () => MapPanel,
  controls: MapControls,
  inspector: MapInspector,
  hints: [
    {
      lead: "Every panel is a head.",
      text: "A point is a token as query or as key. The mark of a panel tells whether near means attended there. Click a panel or turn the wheel to enlarge it.",
    },
    { lead: "Click a point", text: "in an enlarged head to see its whole input." },
    { lead: "Search", text: "for a word to find the heads that bring it together." },
  ],
  status,
  keys: [
    {
      key: "/",
      shown: "/",
      does: "search on the map, or in the heat-map of a long input",
      act: (_desk, frame) => frame.focusControl(".aa-search"),
    },
    {
      key: "t",
      shown: "t",
      does: "true and near: what a point attends to most, and what lies nearest",
      act: (desk) => (desk.picks.trueNear = !desk.picks.trueNear),
    },
    ...TOKEN_KEYS,
    ...COLUMN_KEYS,
  ],
  stepToken: stepPoint,
  commands,
  ways: [{ key: "m", shown: "m", does: "Map tab", act: (desk) => desk.setTab("map") }],
  into: (desk) => desk.map.enter(desk.focus),
  out: (desk) => desk.map.leave(),
  // The attention of an input is needed once one of its points is picked, and only in the drawn layer.
  needs: (desk) => (desk.picks.pinned ? ["map", "layer", "pictures"] : ["map"]),
  alone: (picks) => picks.mapHead,
  steps: ["map", "mapHead"],
};

function commands(desk: Desk): Command[] {
  const { map, about } = desk;
  const missing = about.estimates.filter(
    ({ method, dims }) => !about.maps.some((known) => known.method === method && known.dims === dims),
  );
  const there = (act: () => unknown) => () => (desk.setTab("map"), act());
  return [
    ...about.maps.map(({ method, dims }) => ({
      group: "Projection",
      text: `${METHODS[method] ?? method} ${dims}-D`,
      act: there(() => map.choose(method, dims)),
    })),
    ...missing.map(({ method, dims, seconds }) => ({
      group: "Compute",
      text: `map by ${METHODS[method] ?? method} ${dims}-D, about ${took(seconds)}`,
      act: there(() => void map.compute(method, dims)),
    })),
    ...(map.data ? choices(map.data) : []).map(({ name, label }) => ({
      group: "Map colour",
      text: label,
      act: there(() => (desk.picks.colour = name)),
    })),
    { group: "Map", text: "all heads", act: there(() => map.leave()) },
    { group: "Map", text: "names of tokens, on or off", act: there(() => (desk.picks.labels = !desk.picks.labels)) },
    {
      group: "Map",
      text: "lines to the strongest keys, on or off",
      act: there(() => (desk.picks.lines = !desk.picks.lines)),
    },
  ];
}

function status({ map: { data, info }, hoverHead, focus }: Desk): { name: string; text: string }[] {
  if (!data) return [];
  const head = data.names.indexOf(hoverHead ?? focus);
  const points = data.points.toLocaleString("en");
  const said = data.verdicts[head] as Verdict | undefined;
  const fidelity = said ? ` · ${data.names[head]} ${`${MARKS[said.grade]} ${said.badge}`.trim()}` : "";
  const text = `${info?.method} ${info?.dims}-D, ${points} points per head${fidelity}`;
  return [{ name: "map", text }];
}
