// What does each head do over several models?
import type { ComparedModels } from "../source/wire";

export interface HeadLine {
  head: string;
  /** One value for each model; NaN where there is none. */
  values: Float32Array;
}

/** Get the line of each head for one score, and the range of all. */
export function linesOf(comparison: ComparedModels, measure: number): { heads: HeadLine[]; low: number; high: number } {
  const [models, count] = [comparison.models.length, comparison.line_heads.length];
  const first = measure * models * count;
  const heads = comparison.line_heads.map((head, at) => ({
    head,
    values: Float32Array.from({ length: models }, (_, model) => comparison.lines.data[first + model * count + at]),
  }));
  const known = heads.flatMap(({ values }) => [...values].filter(Number.isFinite));
  const low = known.reduce((a, b) => Math.min(a, b), Infinity);
  const high = known.reduce((a, b) => Math.max(a, b), -Infinity);
  if (known.length === 0) return { heads, low: 0, high: 1 };
  return { heads, low, high: high > low ? high : low + 1 };
}

/** Write the points of a line; models without a value are left out. */
export function lineOf(values: Float32Array, x: (model: number) => number, y: (value: number) => number): string {
  return [...values]
    .flatMap((value, model) => (Number.isFinite(value) ? [`${x(model).toFixed(1)},${y(value).toFixed(1)}`] : []))
    .join(" ");
}
