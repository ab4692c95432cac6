// How does the comparison of models arrange heads, matches and dots?
import type { ComparedModels } from "../source/wire";

export interface Square {
  name: string;
  row: number;
  across: number;
}

/** Get the row and column of each head from its name; towers are below each other. */
export function squares(heads: readonly string[]): Square[] {
  const rows = new Map<string, number>();
  return heads.map((name) => {
    const [, layer, head] = /^(.*L\d+)H(\d+)$/.exec(name) ?? ["", name, "0"];
    if (!rows.has(layer)) rows.set(layer, rows.size);
    return { name, row: rows.get(layer) ?? 0, across: Number(head) };
  });
}

/** Get a name that fits: of checkpoints of one model, their folders in brackets tell them apart. */
export function ownName(name: string): string {
  const own = /\(([^()]+)\)$/.exec(name)?.[1] ?? name;
  return own.length > 22 ? `${own.slice(0, 8)}…${own.slice(-12)}` : own;
}

export interface Match {
  head: string;
  nearest: string;
  away: number;
  /** Divergence from the head of the same name; undefined where the models have different heads. */
  same: number | undefined;
}

/** List the heads of the first model, most different first: from the nearest head of `model`, or from the same name. */
export function apart(comparison: ComparedModels, model: number, by: "nearest" | "same"): Match[] {
  const counterpart = comparison.counterparts[model - 1];
  const all = comparison.models[0].matched.map((head, at) => ({
    head,
    nearest: comparison.models[model].matched[counterpart.nearest.data[at]],
    away: counterpart.away.data[at],
    same: counterpart.same?.data[at],
  }));
  const key = (match: Match) => (by === "same" ? (match.same ?? 0) : match.away);
  return all.sort((a, b) => key(b) - key(a));
}

export interface MapDot {
  model: number;
  head: string;
  x: number;
  y: number;
}

/** List the heads of all models with their places on one map. */
export function dots(comparison: ComparedModels): MapDot[] {
  const names = comparison.models.flatMap(({ matched }, model) => matched.map((head) => ({ model, head })));
  return names.map((name, at) => ({
    ...name,
    x: comparison.places.data[2 * at],
    y: comparison.places.data[2 * at + 1],
  }));
}

/** Write a number as Table 1 of the study does. */
export const sixth = (row: string, value: number): string =>
  row === "Number of heads" ? String(value) : value.toFixed(6);
