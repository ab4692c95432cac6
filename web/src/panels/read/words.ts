// How is a text set, word by word, with the attention of the picked tokens?
import type { Desk } from "../../desk/desk.svelte";
import { placesOf } from "../../desk/token_set";
import { bent, NEGATIVE, POSITIVE, type Rgb } from "../../draw/colour";
import type { TokenInfo } from "../../source/tokens";
import type { TokenSet } from "../../source/wire";
import { together, type Side } from "../../weights/partners";
import { SPACE, type Unit } from "../../weights/units";

/** The attention on each token of one side, mean over the picked heads. */
export interface Tint {
  /** The side of the coloured tokens. */
  side: Side;
  weights: Float32Array;
  most: number;
  colour: Rgb;
  /** Whether numbers may be below zero: contributions. */
  signed: boolean;
}

/** Get the attention of the picked tokens; of all tokens that look, if none is picked. */
export function tintOf(desk: Desk, set: TokenSet | null): Tint | null {
  const { rows, rowUnits, columnUnits } = desk.one;
  if (rows.length === 0) return null;
  const side = set?.side ?? "query";
  const units = side === "query" ? rowUnits : columnUnits;
  const places = set ? placesOf(units, set) : units.map((_, at) => at);
  const how = set ? desk.picks.together : "mean";
  const weights = new Float32Array(side === "query" ? columnUnits.length : rowUnits.length);
  for (const head of rows)
    together(head, side, places, how).forEach((weight, at) => (weights[at] += weight / rows.length));
  const { signed } = desk.one;
  // The colour of a head could be taken for that of a share below zero.
  const colour = (!signed && rows.length === 1 && desk.colours[desk.heads[0]]) || POSITIVE;
  return {
    side: side === "query" ? "key" : "query",
    weights,
    most: weights.reduce((a, b) => Math.max(a, Math.abs(b)), 0),
    colour,
    signed,
  };
}

/** Get the colour of a weight; shares of a layer may be below zero. */
export const colourOf = (weight: number, { colour }: Tint): Rgb => (weight < 0 ? NEGATIVE : colour);

/** Get the strength of a colour, 0 to 1. */
export const strengthOf = (weight: number, { most }: Tint): number => (most > 0 ? bent(Math.abs(weight) / most) : 0);

export interface Word {
  at: number;
  text: string;
  /** Whether a space stands before it. */
  spaced: boolean;
  unit: Unit;
}

/** Get the words of a text: the spaces that a tokenizer marks become spaces again. */
export function wordsOf(units: readonly Unit[], tokens: readonly TokenInfo[]): Word[] {
  const marked = tokens.some(({ text, special }) => !special && text.startsWith(SPACE));
  return units.map((unit, at) => {
    const first = tokens[unit.positions[0]];
    const before = tokens[unit.positions[0] - 1];
    const inside = first && before && first.word >= 0 && first.word === before.word;
    const bare = unit.text.startsWith(SPACE) ? unit.text.slice(SPACE.length) : unit.text;
    const spaced = marked && first ? first.text.startsWith(SPACE) || first.special : !inside;
    return { at, text: bare === "" ? SPACE : bare, spaced: at > 0 && spaced, unit };
  });
}
