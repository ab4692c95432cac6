// What can every view show of a head?
import type { Picks } from "../../source/wire";

/** Contributions in the tiles of a long input. */
export const CONTRIBUTION_IN_TILES =
  "what part of the layer's output comes from each token through this head, times the heads: blue along the output, orange the other way; a cell shows the one farthest from zero. All heads of the layer are read for it, so the first picture takes longer";

/** What is moved in the tiles of a long input, where the other heads of the layer are not read. */
export const MOVED_IN_TILES =
  "the length of weight × value after the output projection, as a share of all that this head moves in the row";

export const WHAT: Record<Picks["shown"], { text: string; says: string; unit: string; all: string }> = {
  weights: {
    text: "weights",
    says: "attention weights: how much each token looks at each",
    unit: "weight",
    all: "the attention",
  },
  moved: {
    text: "what is moved",
    says: "how much a head takes from each token: the length of weight × value after the output projection. 1 is the part of a head if all heads of the layer moved the same",
    unit: "moved (1: an even head)",
    all: "what is moved",
  },
  contribution: {
    text: "contribution",
    says: "what a head brings from each token to the layer's output: blue along the output, orange the other way. 1 is the part of a head if all heads of the layer brought the same",
    unit: "contribution (1: an even head)",
    all: "the contributions (sizes)",
  },
};
