// Which keys does a query attend to most in truth, and which lie nearest to it on the map? For a key: which queries?
import { weightAt, type HeadRows } from "../weights/rows";
import type { MapData } from "./data";

/** As many as the figure `strongest` counts. */
export const COUNTED = 3;

/** The weights of one token with every token of the other side, by position, and which of these the mask lets it see. */
export interface Sight {
  weights: ArrayLike<number>;
  seen: ArrayLike<number>;
}

export interface Partner {
  /** Number of its point; −1 if it is not on this map. */
  at: number;
  position: number;
  weight: number;
  /** On the map, in shares of the longer side of its box; NaN if it is not on the map. */
  distance: number;
}

/** A token with its true strongest partners and its nearest ones. */
export interface TrueNear {
  at: number;
  strongest: Partner[];
  nearest: Partner[];
  /** How many of the strongest are among the nearest. */
  both: number;
}

/** Compare a point's strongest visible partners with the nearest visible ones; `hidden` positions are left out. */
export function trueNear(
  data: MapData,
  head: number,
  at: number,
  sight: Sight,
  hidden: ReadonlySet<number> = new Set(),
): TrueNear {
  const points = others(data, at);
  const partners: Partner[] = [];
  for (let position = 0; position < sight.weights.length; position++) {
    if (!sight.seen[position] || hidden.has(position)) continue;
    const point = points.get(position) ?? -1;
    const distance = point < 0 ? NaN : apart(data, head, at, point);
    partners.push({ at: point, position, weight: sight.weights[position], distance });
  }
  const strongest = partners
    .filter(({ weight }) => weight > 0)
    .sort((a, b) => b.weight - a.weight)
    .slice(0, COUNTED);
  const nearest = partners
    .filter((partner) => partner.at >= 0)
    .sort((a, b) => a.distance - b.distance)
    .slice(0, COUNTED);
  return { at, strongest, nearest, both: strongest.filter((partner) => nearest.includes(partner)).length };
}

/** Get the points of the other side of the same input, position → point. */
function others(data: MapData, at: number): Map<number, number> {
  const [from, to] = at < data.queries ? [data.queries, data.points] : [0, data.queries];
  const out = new Map<number, number>();
  for (let point = from; point < to; point++)
    if (data.input[point] === data.input[at]) out.set(data.position[point], point);
  return out;
}

/** Get the distance of two points on a head's map, with a unit of the same length on every axis. */
export function apart({ places, points, dims, shapes }: MapData, head: number, a: number, b: number): number {
  let sum = 0;
  for (let axis = 0; axis < dims; axis++) {
    const off = places[(head * points + a) * dims + axis] - places[(head * points + b) * dims + axis];
    sum += ((off / 65535) * shapes[head][axis]) ** 2;
  }
  return Math.sqrt(sum);
}

/**
 * Read a token's weights from the rows that a saved page has; null if they lack some keys. A saved page has no masks: a
 * key without any weight counts as not seen.
 */
export function sightOf(rows: HeadRows, side: "query" | "key", position: number): Sight | null {
  const [own, count] = side === "query" ? [rows.n, rows.m] : [rows.m, rows.n];
  if (!rows.whole || position >= own) return null;
  const weights = Float32Array.from({ length: count }, (_, at) =>
    side === "query" ? (weightAt(rows, position, at) ?? 0) : (weightAt(rows, at, position) ?? 0),
  );
  return { weights, seen: weights.map((weight) => Number(weight > 0)) };
}
