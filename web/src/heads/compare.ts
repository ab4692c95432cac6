// Several models on the same inputs, as the comparison page reads them.
import type { ComparedModels } from "../source/wire";

export interface Square {
  name: string;
  row: number;
  across: number;
}

/** Where heads stand in a picture of layers × heads, by their names alone; towers below each other. */
export function squares(heads: readonly string[]): Square[] {
  const rows = new Map<string, number>();
  return heads.map((name) => {
    const [, layer, head] = /^(.*L\d+)H(\d+)$/.exec(name) ?? ["", name, "0"];
    if (!rows.has(layer)) rows.set(layer, rows.size);
    return { name, row: rows.get(layer) ?? 0, across: Number(head) };
  });
}

export interface Match {
  head: string;
  nearest: string;
  away: number;
  /** From the head of the same name; undefined where the models have other heads. */
  same: number | undefined;
}

/** Heads of the first model, the least alike first: to their nearest in another model, or to their namesake there. */
export function apart(made: ComparedModels, model: number, by: "nearest" | "same"): Match[] {
  const found = made.counterparts[model - 1];
  const all = made.models[0].matched.map((head, at) => ({
    head,
    nearest: made.models[model].matched[found.nearest.data[at]],
    away: found.away.data[at],
    same: found.same?.data[at],
  }));
  const key = (one: Match) => (by === "same" ? (one.same ?? 0) : one.away);
  return all.sort((a, b) => key(b) - key(a));
}

export interface MapDot {
  model: number;
  head: string;
  x: number;
  y: number;
}

/** The heads of all models on one map. */
export function dots(made: ComparedModels): MapDot[] {
  const names = made.models.flatMap(({ matched }, model) => matched.map((head) => ({ model, head })));
  return names.map((one, at) => ({ ...one, x: made.places.data[2 * at], y: made.places.data[2 * at + 1] }));
}

/** As the study prints its Table 1. */
export const sixth = (row: string, value: number): string =>
  row === "Number of heads" ? String(value) : value.toFixed(6);
