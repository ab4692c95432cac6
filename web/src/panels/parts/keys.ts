// Which keys do the parts of a view handle themselves? The tabs that have the part list them.
import type { Shown } from "../../desk/keys";

/** Of a column of tokens. */
export const COLUMN_KEYS: readonly Shown[] = [
  { shown: "↑ ↓ in a column", does: "token above or below, in a column of tokens" },
  { shown: "Page ↑ ↓", does: "twenty tokens up or down, in a column of tokens" },
  { shown: "Home End", does: "first or last token, in a column of tokens" },
  { shown: "Space", does: "pin the token in focus" },
  { shown: "Ctrl ↑ ↓ Space", does: "in a column of tokens: go without letting go, add to the set" },
  { shown: "Shift ↑ ↓", does: "in a column of tokens: pick the next token too" },
  { shown: "Ctrl click", does: "add a token or patch to the set of picked tokens" },
  { shown: "Shift click", does: "pick all tokens from the last picked one to this one" },
  { shown: "Alt click", does: "hide or show a token" },
];

/** Of a heat-map. */
export const HEAT_KEYS: readonly Shown[] = [
  { shown: "←→↑↓ in a heat-map", does: "walk its cells; Space pins the row" },
  { shown: "+ − 0", does: "heat-map of a long input: zoom in, zoom out, show all" },
];

/** Of pictures and plots in which every mark is a head. */
export const HEAD_MARK_KEYS: readonly Shown[] = [
  { shown: "←→↑↓ in a plot", does: "the next dot or square in that direction" },
  { shown: "Space on a head", does: "pick the head" },
  { shown: "Enter on a head", does: "show its lines" },
];
