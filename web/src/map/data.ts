// What does the page know about one map? Places of points, their tokens, and places of panels.
import { headPlace } from "../desk/picks";
import type { CloudData } from "../draw/cloud";
import type { About, MapNorms, MapPlaces, MapPoints, NameColumn, NumberColumn } from "../source/wire";
import { shapeOf, type Spot } from "./camera";
import { verdict, type Verdict } from "./verdict";

export type Column = NumberColumn | NameColumn;

export interface MapData extends CloudData {
  map: string;
  group: string;
  names: string[];
  spots: Spot[];
  columns: number;
  /** Numbers of the layers, one for each row. */
  layers: number[];
  shapes: [number, number, number][];
  /** The box of each head (heads, 2, dims). */
  boxes: Float32Array;
  c: Float32Array;
  /** Get a figure of a head, such as its fidelity; NaN if the map does not have it. */
  figure: (head: number, name: string) => number;
  /** What the figures of each head say: whether near means attended. */
  verdicts: Verdict[];
  input: Uint32Array;
  position: Uint32Array;
  text: Uint32Array;
  texts: string[];
  special: Uint8Array;
  colours: Column[];
  /** The picture of each point (−1: none) and its box there; undefined on maps of text. */
  image: Int16Array | null;
  box: Float32Array | null;
}

export function mapData(about: About, places: MapPlaces, points: MapPoints): MapData {
  const [heads, count, dims] = places.places.shape;
  const where = places.heads.map((name) => headPlace(about, name));
  const layers = [...new Set(where.map((place) => place?.layer ?? 0))].sort((a, b) => a - b);
  const spots = where.map((place) => ({ column: place?.head ?? 0, row: layers.indexOf(place?.layer ?? 0) }));
  const { figures, fidelity } = places;
  const figure = (head: number, name: string) => {
    const column = figures.indexOf(name);
    return column < 0 ? NaN : (fidelity.data[head * figures.length + column] ?? NaN);
  };
  return {
    map: places.map,
    group: places.group,
    heads,
    points: count,
    queries: places.queries,
    dims,
    places: places.places.data,
    names: places.heads,
    spots,
    columns: Math.max(...spots.map((spot) => spot.column)) + 1,
    layers,
    shapes: places.heads.map((_, head) => shapeOf(places.box.data, head, dims)),
    boxes: places.box.data,
    c: places.c.data,
    figure,
    verdicts: places.heads.map((_, head) => verdict((name) => figure(head, name))),
    input: Uint32Array.from(points.input.data),
    position: Uint32Array.from(points.position.data),
    text: Uint32Array.from(points.text.data),
    texts: points.texts,
    special: points.special.data,
    colours: points.columns,
    image: points.image?.data ?? null,
    box: points.box?.data ?? null,
  };
}

/** Norms of one map: bytes (heads, points), and the lengths of 0 and 255 for each head and side. */
export interface Norms {
  values: Uint8Array;
  low: Float32Array;
  high: Float32Array;
}

export const normsOf = (packet: MapNorms): Norms => ({
  values: packet.values.data,
  low: packet.low.data,
  high: packet.high.data,
});

/** Get the shortest and longest query, then key, of one head; `scaled` as for the map. */
export function lengths(norms: Norms, data: MapData, head: number, scaled: boolean): [number, number, number, number] {
  const by = scaled ? [data.c[head], 1 / data.c[head]] : [1, 1];
  return [0, 1].flatMap((side) => [norms.low[2 * head + side] * by[side], norms.high[2 * head + side] * by[side]]) as [
    number,
    number,
    number,
    number,
  ];
}

/** Get the range of each side's bytes on the head's common scale: share = from + byte / 255 · (to − from). */
export function normSpan(norms: Norms, data: MapData, head: number, scaled: boolean): [number, number, number, number] {
  const all = lengths(norms, data, head, scaled);
  const low = Math.min(all[0], all[2]);
  const range = Math.max(all[1], all[3]) - low || 1;
  return all.map((length) => (length - low) / range) as [number, number, number, number];
}

export function normAt(norms: Norms, data: MapData, head: number, at: number, scaled: boolean): number {
  const [queryLow, queryHigh, keyLow, keyHigh] = lengths(norms, data, head, scaled);
  const [low, high] = at < data.queries ? [queryLow, queryHigh] : [keyLow, keyHigh];
  return low + (norms.values[head * data.points + at] / 255) * (high - low);
}

/** Get the point of a token, or −1 if it is not on the map. */
export function pointOf(data: MapData, input: number, side: "query" | "key", position: number): number {
  const [from, to] = side === "query" ? [0, data.queries] : [data.queries, data.points];
  for (let at = from; at < to; at++) if (data.input[at] === input && data.position[at] === position) return at;
  return -1;
}
