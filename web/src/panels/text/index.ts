// The Text tab: which token looks at which in one input, in six views.
import type { Desk } from "../../desk/desk.svelte";
import type { Tab } from "../../desk/tab";
import { share } from "../../weights/lines";
import TextBar from "./TextBar.svelte";
import TextControls from "./TextControls.svelte";
import TextInspector from "./TextInspector.svelte";
import TextRow from "./TextRow.svelte";
import { TOKEN_KEYS } from "../../desk/keys";
import type { Picks } from "../../source/wire";
import { COLUMN_KEYS, HEAT_KEYS } from "../parts/keys";
import { WHAT } from "../parts/shown";
import { VIEWS } from "./views";
import { isolated } from "../../draw/letters";

const hasTokens = ({ picks }: Desk): boolean => !VIEWS[picks.view].allHeads && picks.view !== "logit";

export const text: Tab = {
  name: "text",
  title: "Text",
  about: "which token looks at which, in one input",
  inCell: () => true,
  closeUp: () => true,
  panel: (desk) => VIEWS[desk.picks.view][desk.one.long ? "long" : "panel"],
  controls: TextControls,
  inspector: TextInspector,
  bar: TextRow,
  cellBar: TextBar,
  hints: [
    { lead: "Point at a token", text: "to see only its lines. Click it to keep them.", applies: hasTokens },
    {
      applies: hasTokens,
      lead: "Colours are heads.",
      text: "Click a square to add or remove a head, double-click to show only that head.",
    },
    { lead: "All heads", text: "shows the whole model. Click a head to open it." },
  ],
  status: ({ drawn, picks, as }) =>
    drawn && VIEWS[picks.view].counts
      ? [
          {
            name: "drawn",
            text: `drawn: ${share(drawn.drawn, drawn.total)} of ${WHAT[as ? picks.shown : "weights"].all}`,
          },
        ]
      : [],
  legend: "rows look, columns are looked at",
  tokenName(desk, token) {
    const text = desk.unitOf(token)?.text ?? desk.one.tokensAt(token.side)[token.position]?.text;
    return text === undefined ? "" : `\u00a0“${isolated(text)}”`;
  },
  keys: [
    { key: "a", shown: "a", does: "show all heads of the layer", act: (desk) => desk.allHeads() },
    ...TOKEN_KEYS,
    ...COLUMN_KEYS,
    ...HEAT_KEYS,
  ],
  ways: [
    { key: "1", shown: "1", does: "Lines view", act: (desk) => desk.setTab("text", "head") },
    { key: "2", shown: "2", does: "All heads view", act: (desk) => desk.setTab("text", "model") },
    { key: "3", shown: "3", does: "Neurons view", act: (desk) => desk.setTab("text", "neuron") },
    { key: "4", shown: "4", does: "Heat-map view", act: (desk) => desk.setTab("text", "heat") },
    { key: "5", shown: "5", does: "Logit view", act: (desk) => desk.setTab("text", "logit") },
    { key: "6", shown: "6", does: "Reading view", act: (desk) => desk.setTab("text", "read") },
  ],
  commands: (desk) => [
    ...(desk.about.no_moved ? [] : (Object.keys(WHAT) as Picks["shown"][])).map((shown) => ({
      group: "Shown",
      text: WHAT[shown].text,
      act: () => desk.alter({ shown }),
    })),
    ...desk.about.towers.slice(desk.about.towers.length > 1 ? 0 : 1).map(({ name, queries, keys }) => ({
      group: "Attention",
      text: `${name}: ${queries} looks at ${keys}`,
      act: () => desk.setTower(name),
    })),
    {
      group: "Text",
      text: "without sinks, or with them",
      act: () => desk.alter({ withoutSinks: !desk.picks.withoutSinks }),
    },
    { group: "Text", text: "show all hidden tokens", act: () => desk.showAll() },
  ],
  into(desk) {
    if (VIEWS[desk.picks.view].allHeads) desk.picks.view = "head";
  },
  out(desk) {
    desk.picks.view = "model";
  },
  undo: [
    "hidden",
    "basis",
    "chosen",
    "together",
    "filter",
    "threshold",
    "topk",
    "words",
    "pooled",
    "withoutSinks",
    "shown",
  ],
  steps: ["view", "other"],
  figureName: (desk) => desk.picks.view,
  isPlain: (desk) => desk.picks.view === "head",
};
