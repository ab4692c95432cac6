// Which views does the Text tab have? A new view is one folder and one line here.
import type { Part } from "../../desk/tab";
import type { Picks } from "../../source/wire";
import HeadPanel from "../head/HeadPanel.svelte";
import LogitPanel from "../logit/LogitPanel.svelte";
import HeatPanel from "../heat/HeatPanel.svelte";
import ModelPanel from "../model/ModelPanel.svelte";
import NeuronPanel from "../neuron/NeuronPanel.svelte";
import LongHeads from "../tiles/LongHeads.svelte";
import LongLines from "../tiles/LongLines.svelte";
import TilePanel from "../tiles/TilePanel.svelte";
import ReadPanel from "../read/ReadPanel.svelte";
import TooLong from "../tiles/TooLong.svelte";

interface View {
  name: string;
  about: string;
  panel: Part;
  /** The panel for an input too long to be drawn whole. */
  long: Part;
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
    long: LongLines,
    counts: true,
  },
  model: {
    name: "All heads",
    about: "every head of the model, small",
    panel: ModelPanel,
    long: LongHeads,
    allHeads: true,
  },
  neuron: {
    name: "Neurons",
    about: "how query and keys give the attention of one token",
    panel: NeuronPanel,
    long: TooLong,
  },
  heat: {
    name: "Heat-map",
    about: "the weights as a matrix, beside the lines",
    panel: HeatPanel,
    long: TilePanel,
    counts: true,
  },
  logit: {
    name: "Logit",
    about: "what each head and each token adds to the logit of a token or class",
    panel: LogitPanel,
    long: LogitPanel,
    allHeads: true,
  },
  read: {
    name: "Reading",
    about: "the text itself, coloured by what the picked tokens look at",
    panel: ReadPanel,
    long: TooLong,
  },
};
