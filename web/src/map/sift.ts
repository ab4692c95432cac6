// Which points must be drawn? Of the points on one pixel of a small panel only the nearest can be seen.
import { turning, type Orbit } from "./camera";

/** Get the depth of a point of a 2-D map; the shader does the same. */
export const shuffled = (at: number): number => (Math.imul(at, 2654435769) >>> 8) / 16777216;

export interface Sifted {
  places: Uint16Array;
  points: number;
  dims: number;
}

/** A panel in pixels of the screen. */
export interface Place {
  head: number;
  x: number;
  y: number;
  shape: readonly number[];
}

/** Panels with fewer points than this share of their pixels are drawn completely. */
const CROWD = 0.25;
/** Points are listed with this step, so that each part of a list is an even sample. */
const STRIDE = 8;

/** List all points of some panels, or a sample of `most`. */
export function everyPoint(places: readonly Place[], { points }: Sifted, most = Infinity): Uint32Array {
  const out = new Uint32Array(Math.min(most, places.length * points));
  let count = 0;
  for (let from = 0; from < STRIDE; from++) {
    for (const { head } of places) {
      for (let at = from; at < points && count < out.length; at += STRIDE) out[count++] = head * points + at;
    }
  }
  return out.subarray(0, count);
}

/** List the points that can be seen, and all marked points. */
export function sift(
  places: readonly Place[],
  data: Sifted,
  side: number,
  room: number,
  orbit: Orbit,
  marks: Uint8Array | null,
): Uint32Array {
  const wide = Math.ceil(side) + 2;
  if (data.points < CROWD * wide * wide) return everyPoint(places, data);
  const out = new Uint32Array(places.length * data.points);
  const best = new Int32Array(wide * wide);
  const depth = depths(data.points);
  let count = 0;
  for (const place of places) {
    best.fill(-1);
    if (data.dims < 3) nearestFlat(best, wide, place, data, side, room, depth);
    else nearestSolid(best, wide, place, data, side, room, turning(orbit, data.dims));
    const from = place.head * data.points;
    for (let at = 0; at < best.length; at++) if (best[at] >= 0 && !marks?.[best[at]]) out[count++] = from + best[at];
    if (marks) for (let at = 0; at < data.points; at++) if (marks[at]) out[count++] = from + at;
  }
  return out.slice(0, count);
}

let kept = new Float32Array(0);
function depths(points: number): Float32Array {
  if (kept.length !== points) kept = Float32Array.from({ length: points }, (_, at) => shuffled(at));
  return kept;
}

function nearestFlat(
  best: Int32Array,
  wide: number,
  place: Place,
  { places, points }: Sifted,
  side: number,
  room: number,
  depth: Float32Array,
): void {
  const [byX, byY] = [(side * room * place.shape[0]) / 65535, (side * room * place.shape[1]) / 65535];
  // Pixels are those of the screen: the first pixel of a panel may be cut.
  const left = place.x - Math.floor(place.x) + side / 2 - 32767.5 * byX;
  const top = place.y - Math.floor(place.y) + side / 2 + 32767.5 * byY;
  for (let at = 0, from = place.head * points * 2; at < points; at++, from += 2) {
    const pixel = ((top - places[from + 1] * byY) | 0) * wide + ((left + places[from] * byX) | 0);
    const old = best[pixel];
    if (old < 0 || depth[at] < depth[old]) best[pixel] = at;
  }
}

function nearestSolid(
  best: Int32Array,
  wide: number,
  place: Place,
  { places, points }: Sifted,
  side: number,
  room: number,
  m: readonly number[],
): void {
  const near = new Float32Array(best.length);
  const [sx, sy, sz] = place.shape;
  const [left, top] = [place.x - Math.floor(place.x) + side / 2, place.y - Math.floor(place.y) + side / 2];
  for (let at = 0, from = place.head * points * 3; at < points; at++, from += 3) {
    const a = (places[from] / 65535 - 0.5) * sx;
    const b = (places[from + 1] / 65535 - 0.5) * sy;
    const c = (places[from + 2] / 65535 - 0.5) * sz;
    const pixel =
      ((top - side * room * (m[1] * a + m[4] * b + m[7] * c)) | 0) * wide +
      ((left + side * room * (m[0] * a + m[3] * b + m[6] * c)) | 0);
    if (pixel < 0 || pixel >= best.length) continue;
    const front = m[2] * a + m[5] * b + m[8] * c;
    if (best[pixel] < 0 || front > near[pixel]) {
      best[pixel] = at;
      near[pixel] = front;
    }
  }
}
