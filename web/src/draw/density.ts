// How do millions of points become one picture? Each is counted on its pixel, with its colour; a pixel then shows the
// mean colour of its points, the stronger the more they are. On the processor: whole numbers add up exactly, nothing
// depends on a GPU, and float textures, which WebGL would need, are not everywhere.
import { pixelOf, runs, type Crowd, type Projection } from "../map/crowd";
import type { Size } from "../map/camera";
import type { Rgb } from "./colour";

/** How each point is coloured; `shade` and `marks` are by slot of the crowd. */
export interface Shades {
  /** Place on the scale, from 256 on for keys. */
  shade: Uint16Array;
  /** 512 colours, RGBA. */
  scale: Uint8Array;
  marks: Uint8Array | null;
}

/** How strongly a single point shows, and which share of the pixels may be of full strength. */
const FAINT = 0.45;
/** How strongly a point tints the pixels beside its own, where they have none. */
const BESIDE = 0.5;
const FULL = 0.005;
/** How far what is not marked steps back. */
const DIMMED = 0.2;

/** Count the points of a window; `sums` gets count, red, green and blue of each pixel. Returns how many were counted. */
export function countPoints(
  sums: Uint32Array,
  crowd: Crowd,
  by: Projection,
  size: Size,
  { shade, scale }: Shades,
  every = 1,
): number {
  const { places, dims } = crowd;
  const { width, height } = size;
  const [ax, bx, cx] = [by.byX[0], by.byX[1], dims > 2 ? by.byX[2] : 0];
  const [ay, by_, cy] = [by.byY[0], by.byY[1], dims > 2 ? by.byY[2] : 0];
  const last = dims - 1;
  let counted = 0;
  runs(crowd, by, size, (from, to) => {
    for (let slot = from; slot < to; slot += every) {
      const at = slot * dims;
      const [u, v, w] = [places[at], places[at + 1], places[at + last]];
      const x = by.x + ax * u + bx * v + cx * w;
      const y = by.y + ay * u + by_ * v + cy * w;
      if (!(x >= 0 && y >= 0 && x < width && y < height)) continue;
      const pixel = 4 * ((y | 0) * width + (x | 0));
      const colour = 4 * shade[slot];
      sums[pixel]++;
      sums[pixel + 1] += scale[colour];
      sums[pixel + 2] += scale[colour + 1];
      sums[pixel + 3] += scale[colour + 2];
      counted++;
    }
  });
  return counted;
}

/** Find the count that all but a few of the pixels with points stay below. */
export function fullAt(sums: Uint32Array): number {
  const often = new Uint32Array(1024);
  let filled = 0;
  for (let at = 0; at < sums.length; at += 4) {
    if (sums[at] === 0) continue;
    often[Math.min(1023, sums[at])]++;
    filled++;
  }
  let beyond = FULL * filled;
  for (let count = 1023; count > 4; count--) if ((beyond -= often[count]) < 0) return count;
  return 4;
}

/** Write the picture of counted points, RGBA, on paper; a point also tints the pixels beside its own. */
export function shadePixels(
  picture: Uint8ClampedArray,
  sums: Uint32Array,
  width: number,
  paper: Rgb,
  dimmed: boolean,
): void {
  const full = fullAt(sums);
  const strength = Float32Array.from({ length: full + 1 }, (_, count) =>
    count === 0 ? 0 : (dimmed ? DIMMED : 1) * (FAINT + (1 - FAINT) * (Math.log(count) / Math.log(full))),
  );
  const row = 4 * width;
  for (let at = 0, column = 0; at < sums.length; at += 4, column = column + 1 < width ? column + 1 : 0) {
    let from = at;
    if (sums[at] === 0) {
      // Above the first row and below the last one nothing is read, which is no more than anything.
      if (column > 0 && sums[at - 4] > 0) from = at - 4;
      if (column + 1 < width && sums[at + 4] > sums[from]) from = at + 4;
      if (sums[at - row] > sums[from]) from = at - row;
      if (sums[at + row] > sums[from]) from = at + row;
    }
    const count = sums[from];
    const alpha = strength[count > full ? full : count] * (from === at ? 1 : BESIDE);
    for (let part = 0; part < 3; part++)
      picture[at + part] = paper[part] + (count === 0 ? 0 : alpha * (sums[from + part + 1] / count - paper[part]));
    picture[at + 3] = 255;
  }
}

/** Draw points as round dots with a soft edge; marked ones come last and larger, others step back. */
export function drawDots(
  picture: Uint8ClampedArray,
  crowd: Crowd,
  by: Projection,
  size: Size,
  slots: Uint32Array,
  { shade, scale, marks }: Shades,
  diameter: number,
  onlyMarked = false,
): void {
  for (const late of marks ? [0, 1] : [0]) {
    if (onlyMarked && !late) continue;
    const radius = (diameter * (late ? 1.7 : 1)) / 2;
    const clear = marks && !late ? DIMMED : 1;
    for (const slot of slots) {
      if (marks && marks[slot] !== late) continue;
      const { x, y } = pixelOf(crowd, by, slot);
      dot(picture, size, x, y, radius, scale.subarray(4 * shade[slot], 4 * shade[slot] + 3), clear);
    }
  }
}

function dot(
  picture: Uint8ClampedArray,
  { width, height }: Size,
  x: number,
  y: number,
  radius: number,
  colour: Uint8Array,
  clear: number,
): void {
  const [left, right] = [Math.max(0, Math.floor(x - radius - 1)), Math.min(width - 1, Math.ceil(x + radius))];
  const [top, bottom] = [Math.max(0, Math.floor(y - radius - 1)), Math.min(height - 1, Math.ceil(y + radius))];
  for (let row = top; row <= bottom; row++) {
    for (let column = left; column <= right; column++) {
      const away = Math.hypot(column + 0.5 - x, row + 0.5 - y);
      const alpha = clear * Math.min(1, Math.max(0, radius - away + 0.5));
      if (alpha <= 0) continue;
      const at = 4 * (row * width + column);
      for (let part = 0; part < 3; part++) picture[at + part] += alpha * (colour[part] - picture[at + part]);
    }
  }
}
