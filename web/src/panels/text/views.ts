// Every panel, once: a new one is one folder and one line here.
import type { Component } from "svelte";
import type { Desk } from "../../desk/desk.svelte";
import type { Picks } from "../../source/wire";
import HeadPanel from "../head/HeadPanel.svelte";
import HeatPanel from "../heat/HeatPanel.svelte";
import ModelPanel from "../model/ModelPanel.svelte";
import NeuronPanel from "../neuron/NeuronPanel.svelte";

interface Panel {
  name: string;
  about: string;
  panel: Component<{ desk: Desk }>;
}

export const PANELS: Record<Picks["view"], Panel> = {
  head: { name: "Lines", about: "who looks at whom, in the heads of one layer", panel: HeadPanel },
  model: { name: "All heads", about: "every head of the model at a glance", panel: ModelPanel },
  neuron: { name: "Neurons", about: "how query and key make one token's attention", panel: NeuronPanel },
  heat: { name: "Heat-map", about: "the weights as a matrix, next to the lines", panel: HeatPanel },
};
