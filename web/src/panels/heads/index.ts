// The Heads tab: the kind and the scores of each head, and the comparison with other models.
import type { Frame } from "../../desk/keys";
import type { Tab } from "../../desk/tab";
import { HEAD_NUMBERS, KIND_COLOURS } from "../../source/wire";
import { HEAD_MARK_KEYS } from "../parts/keys";
import HeadCard from "./HeadCard.svelte";
import HeadsControls from "./HeadsControls.svelte";
import HeadsPanel from "./HeadsPanel.svelte";

export const heads: Tab = {
  name: "heads",
  title: "Heads",
  about: "kind and scores of each head; similar heads; other models",
  applies: (desk) => desk.about.can_measure,
  panel: () => HeadsPanel,
  controls: HeadsControls,
  inspector: HeadCard,
  hints: [
    {
      lead: "Every square, dot and row is a head.",
      text: "Click one to see its card, double-click to see its lines.",
    },
    {
      lead: "Colour the picture",
      text: "by kind or by any score. Point at a score on the card to see its formula.",
    },
    {
      lead: "On the left",
      text: "choose kinds, scores, or another model to compare with. Click a heading to sort the table.",
    },
  ],
  keys: HEAD_MARK_KEYS,
  commands: (desk) => [
    { group: "Head colour", text: "kind", act: () => (desk.setTab("heads"), (desk.picks.score = "kind")) },
    ...Object.entries(HEAD_NUMBERS).map(([name, title]) => ({
      group: "Head colour",
      text: title,
      act: () => (desk.setTab("heads"), (desk.picks.score = name)),
    })),
    ...Object.keys(KIND_COLOURS).map((kind) => ({
      group: "Heads",
      text: `list only: ${kind}`,
      act: () => (desk.setTab("heads"), (desk.picks.kinds = [kind])),
    })),
    { group: "Heads", text: "list all kinds", act: () => (desk.setTab("heads"), (desk.picks.kinds = [])) },
    ...desk.about.atlases.map(({ title }, place) => ({
      group: "Compare with",
      text: title,
      act: () => (desk.setTab("heads"), (desk.picks.versus = [place])),
    })),
    ...(desk.about.can_edit
      ? [
          {
            group: "Saved test",
            text: `test the label of ${desk.focus}`,
            act: (_: unknown, frame: Frame) => (desk.setTab("heads"), frame.press("[data-testid=test-label]")),
          },
        ]
      : []),
  ],
  steps: ["score", "across", "up", "versus"],
};
