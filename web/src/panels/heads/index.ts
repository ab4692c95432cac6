// The Heads tab: what each head is, and how heads of other models compare.
import type { Tab } from "../../desk/tab";
import HeadCard from "./HeadCard.svelte";
import HeadsControls from "./HeadsControls.svelte";
import HeadsPanel from "./HeadsPanel.svelte";

export const heads: Tab = {
  name: "heads",
  title: "Heads",
  about: "what each head is: kinds, scores, heads alike",
  applies: (desk) => desk.about.can_measure,
  panel: () => HeadsPanel,
  controls: HeadsControls,
  inspector: HeadCard,
  hints: [
    {
      lead: "Every square, dot and row is a head.",
      text: "Click one for its card, double-click for its lines.",
    },
    {
      lead: "Colour the picture",
      text: "by kind or by any score; point at a score on the card for its formula.",
    },
    {
      lead: "On the left",
      text: "choose kinds, scores, or another model to compare with. A click on a column sorts the table.",
    },
  ],
  steps: ["score", "across", "up", "versus"],
};
