// The Heads tab: the kind and the scores of each head, and the comparison with other models.
import type { Tab } from "../../desk/tab";
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
  steps: ["score", "across", "up", "versus"],
};
