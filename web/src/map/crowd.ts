// Where are millions of points of one head, and which of them are in a window? They are kept in the order of squares,
// in typed arrays, so that the points of a window lie in a few runs of memory.
import type { AllPoints, AllTokens } from "../source/wire";
import { roomOf, turning, type Orbit, type Place, type Size } from "./camera";

export interface Crowd {
  count: number;
  queries: number;
  dims: number;
  /** (count, dims), 0 to 65535 across its own box, in the order of squares. */
  places: Uint16Array;
  /** The number of the point at each place of that order: all queries in token order, then all keys. */
  order: Uint32Array;
  /** Start of each square's points, and the end (SIDE² + 1). */
  start: Uint32Array;
  /** The share of the box of the map at place 0, and per step, on each axis. */
  from: number[];
  step: number[];
}

/** Squares along one side. */
const SIDE = 256;
const SHIFT = 8;

/** Sort all points of a head into squares; `box` is that of the head's map (2, dims), which the panel shows. */
export function crowdOf(points: AllPoints, box: Float32Array): Crowd {
  const [count, dims] = points.places.shape;
  const given = points.places.data;
  const start = new Uint32Array(SIDE * SIDE + 1);
  const squareOf = (at: number) => (given[at * dims + 1] >> SHIFT) * SIDE + (given[at * dims] >> SHIFT);
  for (let at = 0; at < count; at++) start[squareOf(at) + 1]++;
  for (let at = 1; at < start.length; at++) start[at] += start[at - 1];
  const next = start.slice();
  const order = new Uint32Array(count);
  const places = new Uint16Array(count * dims);
  for (let at = 0; at < count; at++) {
    const slot = next[squareOf(at)]++;
    order[slot] = at;
    for (let axis = 0; axis < dims; axis++) places[slot * dims + axis] = given[at * dims + axis];
  }
  const axes = [...Array(dims).keys()];
  const own = points.box.data;
  const wide = axes.map((axis) => box[dims + axis] - box[axis] || 1);
  return {
    count,
    queries: points.queries,
    dims,
    places,
    order,
    start,
    from: axes.map((axis) => (own[axis] - box[axis]) / wide[axis]),
    step: axes.map((axis) => (own[dims + axis] - own[axis]) / wide[axis] / 65535),
  };
}

/** The pixel of a place: x + Σ byX[axis] · place[axis], y + Σ byY[axis] · place[axis]. */
export interface Projection {
  x: number;
  y: number;
  byX: number[];
  byY: number[];
}

/** Get the projection of a panel: its corner and side in pixels, its shape (see `shapeOf`), and how it is turned. */
export function projection(
  crowd: Crowd,
  corner: Place,
  side: number,
  shape: readonly number[],
  orbit: Orbit,
): Projection {
  const m = turning(orbit, crowd.dims);
  const room = side * roomOf(crowd.dims);
  const out = { x: corner.x + side / 2, y: corner.y + side / 2, byX: [] as number[], byY: [] as number[] };
  for (let axis = 0; axis < crowd.dims; axis++) {
    const [across, down] = [room * m[3 * axis] * shape[axis], -room * m[3 * axis + 1] * shape[axis]];
    out.x += across * (crowd.from[axis] - 0.5);
    out.y += down * (crowd.from[axis] - 0.5);
    out.byX.push(across * crowd.step[axis]);
    out.byY.push(down * crowd.step[axis]);
  }
  return out;
}

/** Call `run` with the ends of each run of points that may be in a window; in 3-D all points may be. */
export function runs(crowd: Crowd, by: Projection, size: Size, run: (from: number, to: number) => void): void {
  if (crowd.dims > 2) return run(0, crowd.count);
  const [left, right] = squares(by.x, by.byX[0], size.width);
  const [top, bottom] = squares(by.y, by.byY[1], size.height);
  for (let row = top; row <= bottom; row++)
    run(crowd.start[row * SIDE + left], crowd.start[row * SIDE + Math.max(left, right + 1)]);
}

/** Get the first and last square of an axis with places in 0 to `length` pixels. */
function squares(from: number, by: number, length: number): [number, number] {
  if (by === 0) return [0, SIDE - 1];
  const ends = [-from / by, (length - from) / by].sort((a, b) => a - b);
  const square = (place: number) => Math.floor(place) >> SHIFT;
  return [
    Math.max(0, Math.min(SIDE - 1, square(Math.max(0, ends[0])))),
    Math.max(-1, Math.min(SIDE - 1, ends[1] < 0 ? -1 : square(Math.min(65535, ends[1])))),
  ];
}

/** List the slots of the points in a window; null if there are more than `most`. */
export function inWindow(crowd: Crowd, by: Projection, size: Size, most: number): Uint32Array | null {
  const out = new Uint32Array(most + 1);
  let count = 0;
  runs(crowd, by, size, (from, to) => {
    for (let slot = from; slot < to && count <= most; slot++) {
      const { x, y } = pixelOf(crowd, by, slot);
      if (x >= 0 && y >= 0 && x < size.width && y < size.height) out[count++] = slot;
    }
  });
  return count > most ? null : out.slice(0, count);
}

export function pixelOf({ places, dims }: Crowd, by: Projection, slot: number): Place {
  const at = slot * dims;
  let x = by.x + by.byX[0] * places[at] + by.byX[1] * places[at + 1];
  let y = by.y + by.byY[0] * places[at] + by.byY[1] * places[at + 1];
  if (dims > 2) {
    x += by.byX[2] * places[at + 2];
    y += by.byY[2] * places[at + 2];
  }
  return { x, y };
}

/** Get the slot of the nearest point within `reach` pixels of a pixel, or −1. */
export function nearestSlot(crowd: Crowd, by: Projection, x: number, y: number, reach: number): number {
  const around = { ...by, x: by.x - x + reach, y: by.y - y + reach };
  let [best, least] = [-1, reach * reach];
  runs(crowd, around, { width: 2 * reach, height: 2 * reach }, (from, to) => {
    for (let slot = from; slot < to; slot++) {
      const at = pixelOf(crowd, by, slot);
      const away = (at.x - x) ** 2 + (at.y - y) ** 2;
      if (away < least) [best, least] = [slot, away];
    }
  });
  return best;
}

/** The tokens of the queries and of the keys; one object twice where both are of one stream. */
export type Sides = readonly [AllTokens, AllTokens];

/** What a point is: its side, its input, its place there, its text. */
export interface Known {
  side: "query" | "key";
  input: number;
  position: number;
  text: string;
}

export function knownOf(crowd: Crowd, sides: Sides, at: number): Known {
  const [side, token] = at < crowd.queries ? (["query", at] as const) : (["key", at - crowd.queries] as const);
  const tokens = sides[side === "query" ? 0 : 1];
  const starts = tokens.starts.data;
  let [low, high] = [0, starts.length - 1];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (starts[middle] <= token) low = middle;
    else high = middle;
  }
  return { side, input: low, position: token - starts[low], text: tokens.texts[tokens.text.data[token]] };
}

/** Get the number of a token's point, or −1. */
export function pointOfToken(
  crowd: Crowd,
  sides: Sides,
  input: number,
  side: "query" | "key",
  position: number,
): number {
  const starts = sides[side === "query" ? 0 : 1].starts.data;
  const token = (starts[input] ?? 0) + position;
  if (!(token < (starts[input + 1] ?? 0))) return -1;
  return side === "query" ? token : crowd.queries + token;
}

/** Mark (1) the points for whose number `is` holds; by slot. */
export function marked(crowd: Crowd, is: (at: number) => boolean): Uint8Array {
  const out = new Uint8Array(crowd.count);
  for (let slot = 0; slot < crowd.count; slot++) if (is(crowd.order[slot])) out[slot] = 1;
  return out;
}
