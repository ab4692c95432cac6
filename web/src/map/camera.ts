// Where are panels and points on screen? The plane has a square for each head; the camera shows a part of it.

/** Distance between panels on the plane of addresses: a line for each layer, a column for each head. */
const PITCH = { x: 1.1, y: 1.22 };
const TITLE = 0.12;

/** The corner of the view in pixels of the plane, and the side of a panel in pixels. */
export interface Camera {
  x: number;
  y: number;
  scale: number;
}

export interface Size {
  width: number;
  height: number;
}

/** A place on the plane, in sides of a panel, or on screen, in pixels. */
export interface Place {
  x: number;
  y: number;
}

/** Which head and which layer: its column and row where every layer is a line. */
export interface Spot {
  column: number;
  row: number;
}

export const cornerOf = (spot: Spot): Place => ({ x: spot.column * PITCH.x, y: spot.row * PITCH.y });

/** Get the place on screen of a place of the plane. */
export function onScreen(camera: Camera, { x, y }: Place): Place {
  return { x: x * camera.scale - camera.x, y: y * camera.scale - camera.y };
}

export function fitOne({ x, y }: Place, size: Size): Camera {
  const scale = Math.max(20, Math.min(size.width - 24, size.height - 56));
  return { scale, x: (x + 0.5) * scale - size.width / 2, y: (y + 0.5) * scale - size.height / 2 - 8 };
}

/** Zoom; the point under the cursor stays there. */
export function zoomAt(camera: Camera, x: number, y: number, factor: number, least: number, most: number): Camera {
  const scale = Math.min(most, Math.max(least, camera.scale * factor));
  const by = scale / camera.scale;
  return { scale, x: (camera.x + x) * by - x, y: (camera.y + y) * by - y };
}

/** Get the column and row of the panel at a pixel, on the plane of addresses; titles and gaps belong to it. */
export function spotAt(camera: Camera, x: number, y: number): Spot {
  const [wx, wy] = [(x + camera.x) / camera.scale, (y + camera.y) / camera.scale];
  const column = Math.floor((wx + (PITCH.x - 1) / 2) / PITCH.x);
  const row = Math.floor((wy + (PITCH.y - 1 + TITLE) / 2) / PITCH.y);
  return { column, row };
}

/** A panel above ENTER of the view is entered, below LEAVE it is left; two limits, to avoid flicker. */
const ENTER = 0.72;
const LEAVE = 0.58;

export function single(now: boolean, camera: Camera, size: Size): boolean {
  const share = camera.scale / Math.max(1, Math.min(size.width, size.height));
  return now ? share > LEAVE : share >= ENTER;
}

/** Get a camera between two others; it zooms evenly and moves in a straight line. */
export function between(from: Camera, to: Camera, share: number): Camera {
  const scale = from.scale * (to.scale / from.scale) ** share;
  // The point that both cameras show at the same place does not move, so the movement is straight on screen.
  const part = Math.abs(to.scale - from.scale) < 1e-6 ? share : (scale - from.scale) / (to.scale - from.scale);
  return { scale, x: from.x + (to.x - from.x) * part, y: from.y + (to.y - from.y) * part };
}

/** Write a camera for an address: the middle of the view, and how much of the plane its shorter side shows. */
export function toNumbers(camera: Camera, size: Size, orbit: Orbit): number[] {
  const short = (value: number) => Math.round(value * 10_000) / 10_000;
  const least = Math.min(size.width, size.height);
  const middle = [(camera.x + size.width / 2) / camera.scale, (camera.y + size.height / 2) / camera.scale];
  return [...middle, least / camera.scale, orbit.turn, orbit.tilt].map(short);
}

export function fromNumbers(numbers: readonly number[], size: Size): Camera {
  const scale = Math.min(size.width, size.height) / Math.max(1e-3, numbers[2]);
  return { scale, x: numbers[0] * scale - size.width / 2, y: numbers[1] * scale - size.height / 2 };
}

/** In three dimensions all panels turn together. */
export interface Orbit {
  turn: number;
  tilt: number;
}

export const START_ORBIT: Orbit = { turn: 0.6, tilt: 0.45 };

export function orbitBy(orbit: Orbit, dx: number, dy: number): Orbit {
  const tilt = Math.min(Math.PI / 2, Math.max(-Math.PI / 2, orbit.tilt + dy));
  return { turn: (orbit.turn + dx) % (2 * Math.PI), tilt };
}

/** Get the rotation matrix, column by column as in WebGL. 2-D maps are not turned. */
export function turning(orbit: Orbit, dims: number): number[] {
  if (dims < 3) return [1, 0, 0, 0, 1, 0, 0, 0, 1];
  const [c, s] = [Math.cos(orbit.turn), Math.sin(orbit.turn)];
  const [d, t] = [Math.cos(orbit.tilt), Math.sin(orbit.tilt)];
  return [c, s * t, -s * d, 0, d, t, s, -c * t, c * d];
}

/** Get the share of a panel that its points take; 3-D maps need room to turn. */
export const roomOf = (dims: number): number => (dims < 3 ? 0.95 : 0.66);

/** Get the sides of a head's box as shares of the panel; a unit has the same length on every axis. */
export function shapeOf(box: Float32Array, head: number, dims: number): [number, number, number] {
  const low = head * 2 * dims;
  const sides = [0, 1, 2].map((axis) => (axis < dims ? Math.abs(box[low + dims + axis] - box[low + axis]) : 0));
  const longest = Math.max(...sides, 1e-12);
  return [sides[0] / longest, sides[1] / longest, dims > 2 ? sides[2] / longest : 1];
}

/** Get places in the panel (0 to 1 from the upper left) and depth of one head's points; the shader does the same. */
export interface Flat {
  x: Float32Array;
  y: Float32Array;
  near: Float32Array;
}

export function flatten(
  places: Uint16Array,
  from: number,
  count: number,
  dims: number,
  shape: readonly number[],
  orbit: Orbit,
): Flat {
  const m = turning(orbit, dims);
  const room = roomOf(dims);
  const out = { x: new Float32Array(count), y: new Float32Array(count), near: new Float32Array(count) };
  for (let at = 0; at < count; at++) {
    const place = (from + at) * dims;
    const a = (places[place] / 65535 - 0.5) * shape[0];
    const b = (places[place + 1] / 65535 - 0.5) * shape[1];
    const c = dims > 2 ? (places[place + 2] / 65535 - 0.5) * shape[2] : 0;
    out.x[at] = 0.5 + room * (m[0] * a + m[3] * b + m[6] * c);
    out.y[at] = 0.5 - room * (m[1] * a + m[4] * b + m[7] * c);
    out.near[at] = m[2] * a + m[5] * b + m[8] * c;
  }
  return out;
}
