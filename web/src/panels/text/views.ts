// Every view of the Text tab, once: a new one is one folder and one line here.
import type { Part } from "../../desk/tab";
import type { Picks } from "../../source/wire";
import HeadPanel from "../head/HeadPanel.svelte";
import HeatPanel from "../heat/HeatPanel.svelte";
import ModelPanel from "../model/ModelPanel.svelte";
import NeuronPanel from "../neuron/NeuronPanel.svelte";

interface View {
  name: string;
  about: string;
  panel: Part;
  /** Whether it counts how much of attention it draws, which filters and merged words change. */
  counts?: boolean;
  /** Whether it shows all heads rather than the picked ones. */
  allHeads?: boolean;
}

export const VIEWS: Record<Picks["view"], View> = {
  head: { name: "Lines", about: "who looks at whom, in the heads of one layer", panel: HeadPanel, counts: true },
  model: { name: "All heads", about: "every head of the model at a glance", panel: ModelPanel, allHeads: true },
  neuron: { name: "Neurons", about: "how query and key make one token's attention", panel: NeuronPanel },
  heat: { name: "Heat-map", about: "the weights as a matrix, next to the lines", panel: HeatPanel, counts: true },
};
