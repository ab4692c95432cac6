// Which views does the Text tab have? A new view is one folder and one line here.
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
  /** Whether it has filters and reports the share of the attention that it draws. */
  counts?: boolean;
  /** Whether it shows all heads, not only the picked ones. */
  allHeads?: boolean;
}

export const VIEWS: Record<Picks["view"], View> = {
  head: {
    name: "Lines",
    about: "which token looks at which, in the heads of one layer",
    panel: HeadPanel,
    counts: true,
  },
  model: { name: "All heads", about: "every head of the model, small", panel: ModelPanel, allHeads: true },
  neuron: { name: "Neurons", about: "how query and keys give the attention of one token", panel: NeuronPanel },
  heat: { name: "Heat-map", about: "the weights as a matrix, beside the lines", panel: HeatPanel, counts: true },
};
