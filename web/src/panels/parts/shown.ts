// What can every view show of a head?
import type { Picks } from "../../source/wire";

/** Contributions in the tiles of a long input. */
export const CONTRIBUTION_IN_TILES =
  "what part of the layer's output comes from each token through this head, times the heads: blue with the output, orange against it; a cell shows the one farthest from zero. All heads of the layer are read for it, so the first picture takes longer";

/** What is moved in the tiles of a long input, where the other heads of the layer are not read. */
export const MOVED_IN_TILES =
  "the length of weight × value after the output projection, as a share of all that this head moves in the row";

export const WHAT: Record<Picks["shown"], { text: string; says: string; unit: string }> = {
  weights: { text: "weights", says: "attention weights: how much each token looks at each", unit: "weight" },
  moved: {
    text: "what is moved",
    says: "the length of weight × value after the output projection, as a share of all that the layer moves, times its heads: 1 is an even head's part",
    unit: "moved (1: an even head)",
  },
  contribution: {
    text: "contribution",
    says: "what part of the layer's output comes from this token through this head, below zero where it points against the output, times the heads: 1 is an even head's part",
    unit: "contribution (1: an even head)",
  },
};
