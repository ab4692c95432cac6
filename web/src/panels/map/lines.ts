// Which lines go from the queries of the picked input to their strongest keys?
import type { MapData } from "../../map/data";
import { FAINTEST } from "../../source/wire";
import type { HeadRows } from "../../weights/rows";
import type { Line } from "./overlay";

const KEYS = 2;

/** List the lines to draw; `rows` are the picked head's rows of the picked input, without hidden tokens. */
export function strongest(data: MapData, input: number, rows: HeadRows | undefined): Line[] {
  if (!rows) return [];
  const queries = new Map<number, number>();
  const keys = new Map<number, number>();
  for (let at = 0; at < data.points; at++)
    if (data.input[at] === input) (at < data.queries ? queries : keys).set(data.position[at], at);
  const out: Line[] = [];
  for (const [position, from] of queries) {
    if (position >= rows.n) continue;
    const entries = Array.from({ length: rows.k }, (_, at) => position * rows.k + at).sort(
      (a, b) => Math.abs(rows.weight[b]) - Math.abs(rows.weight[a]),
    );
    for (const at of entries.slice(0, KEYS)) {
      const to = keys.get(rows.index[at]);
      const weight = Math.abs(rows.weight[at]); // a contribution may be below zero
      if (to !== undefined && weight >= FAINTEST) out.push({ from, to, weight });
    }
  }
  return out;
}
