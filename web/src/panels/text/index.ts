// The Text tab: who looks at whom in one input, in four views.
import type { Tab } from "../../desk/tab";
import { share } from "../../weights/lines";
import TextBar from "./TextBar.svelte";
import TextControls from "./TextControls.svelte";
import TextInspector from "./TextInspector.svelte";
import { VIEWS } from "./views";

export const text: Tab = {
  name: "text",
  title: "Text",
  about: "who looks at whom in one input",
  inCell: () => true,
  panel: (desk) => VIEWS[desk.picks.view].panel,
  controls: TextControls,
  inspector: TextInspector,
  bar: TextBar,
  hints: [
    { lead: "Point at a token", text: "to see only its lines. Click to keep it." },
    { lead: "Colours are heads.", text: "Click a square to add or leave out one, double-click for it alone." },
    { lead: "All heads", text: "shows the whole model; click a picture to open it." },
  ],
  status: ({ drawn, picks }) =>
    drawn && VIEWS[picks.view].counts
      ? [{ name: "drawn", text: `drawn: ${share(drawn.drawn, drawn.total)} of attention` }]
      : [],
  legend: "rows look, columns are looked at",
  keys: [{ key: "a", shown: "a", does: "all heads of the layer", act: (desk) => desk.allHeads() }],
  ways: [
    { key: "1", shown: "1", does: "lines", act: (desk) => desk.setTab("text", "head") },
    { key: "2", shown: "2", does: "all heads", act: (desk) => desk.setTab("text", "model") },
    { key: "3", shown: "3", does: "neurons", act: (desk) => desk.setTab("text", "neuron") },
    { key: "4", shown: "4", does: "heat-map", act: (desk) => desk.setTab("text", "heat") },
  ],
  into(desk) {
    if (VIEWS[desk.picks.view].allHeads) desk.picks.view = "head";
  },
  out(desk) {
    desk.picks.view = "model";
  },
  undo: ["hidden", "filter", "threshold", "topk", "words"],
  steps: ["view", "other"],
  figureName: (desk) => desk.picks.view,
  isPlain: (desk) => desk.picks.view === "head",
};
