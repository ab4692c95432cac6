// How are points drawn as patches? Their place on the sheet of pictures, and their size.
import type { Thumbs } from "../source/wire";

/** A smaller patch shows less than a dot. */
const LEAST = 7;
const MOST = 72;

/** Get the side of a patch in pixels, or 0 if too small; it grows slower than the panel, so zooming separates it. */
export function thumbSize(side: number, points: number): number {
  const crowd = Math.min(1.5, Math.max(0.3, Math.sqrt(1500 / Math.max(1, points))));
  const size = crowd * 0.8 * Math.sqrt(side);
  return size < LEAST ? 0 : Math.min(MOST, size);
}

/** Get the median width of a patch as a share of its picture. */
export function typicalWidth(box: Float32Array): number {
  const widths: number[] = [];
  const step = 4 * Math.max(1, Math.floor(box.length / 4 / 500));
  for (let at = 0; at < box.length; at += step) if (box[at + 2] > box[at]) widths.push(box[at + 2] - box[at]);
  return widths.sort((a, b) => a - b)[widths.length >> 1] ?? 1;
}

interface Placed {
  points: number;
  input: ArrayLike<number>;
  image: Int16Array | null;
  box: Float32Array | null;
}

/** Get each point's part of the sheet (points, 4): left, top, right, bottom in 65535ths; 0 without a patch. */
export function sheetBoxes(
  { points, input, image, box }: Placed,
  sheet: Pick<Thumbs, "width" | "height" | "input" | "image" | "cell">,
): Uint16Array {
  const out = new Uint16Array(4 * points);
  if (!image || !box) return out;
  const name = (number: number, picture: number) => number * 65536 + picture;
  const cells = new Map<number, number>();
  sheet.input.data.forEach((number, cell) => cells.set(name(number, sheet.image.data[cell]), cell));
  for (let at = 0; at < points; at++) {
    const cell = image[at] < 0 ? undefined : cells.get(name(input[at], image[at]));
    if (cell === undefined || !(box[4 * at + 2] > box[4 * at])) continue;
    const [x, y, width, height] = sheet.cell.data.subarray(4 * cell, 4 * cell + 4);
    for (let side = 0; side < 4; side++) {
      const share = Math.min(1, Math.max(0, box[4 * at + side]));
      const place = side % 2 === 0 ? (x + share * width) / sheet.width : (y + share * height) / sheet.height;
      out[4 * at + side] = Math.round(65535 * place);
    }
  }
  return out;
}
