// How do a head's weights become pixels, and where is each map?
import { heatPlace, signed, type Rgb } from "../../draw/colour";
import { dense, type HeadRows } from "../../weights/rows";

export interface Box {
  x: number;
  y: number;
  /** Size of one cell; may be less than a pixel. */
  cell: number;
}

/** Compute the largest cell size for some maps of equal size, placed in rows. */
export function boxes(
  count: number,
  rows: number,
  columns: number,
  width: number,
  height: number,
  labels: { left: number; top: number },
): Box[] {
  let best = { cell: 0, across: 1 };
  for (let across = 1; across <= count; across++) {
    const down = Math.ceil(count / across);
    const cell = Math.min((width / across - labels.left - 12) / columns, (height / down - labels.top - 12) / rows, 26);
    if (cell > best.cell) best = { cell, across };
  }
  const wide = labels.left + columns * best.cell + 12;
  const high = labels.top + rows * best.cell + 12;
  return Array.from({ length: count }, (_, at) => ({
    x: (at % best.across) * wide + labels.left,
    y: Math.floor(at / best.across) * high + labels.top,
    cell: best.cell,
  }));
}

/** Room of the strip of a set of tokens beside a map. */
export const STRIP = 22;

/** Get the box of one cell of the strip: below the map for tokens that look, to its right for those looked at. */
export function stripAt(map: Box, { n, m }: HeadRows, side: "query" | "key", at: number) {
  const { x, y, cell } = map;
  const thick = Math.max(6, Math.min(STRIP - 8, cell));
  return side === "query"
    ? { x: x + at * cell, y: y + n * cell + 4, width: cell, height: thick }
    : { x: x + m * cell + 4, y: y + at * cell, width: thick, height: cell };
}

/** Compute the pixels of a map; where several cells share one pixel, the strongest is shown. */
export function pixels(head: HeadRows, wide: number, high: number, scale: Rgb[] | null, dark: boolean): ImageData {
  const out = new ImageData(wide, high);
  const all = dense(head);
  const most = scale ? 1 : largest(all);
  for (let y = 0; y < high; y++) {
    const [r0, r1] = span(y, high, head.n);
    for (let x = 0; x < wide; x++) {
      const [c0, c1] = span(x, wide, head.m);
      let value = 0;
      for (let r = r0; r < r1; r++) {
        for (let c = c0; c < c1; c++) if (Math.abs(all[r * head.m + c]) > Math.abs(value)) value = all[r * head.m + c];
      }
      const rgb = scale ? scale[heatPlace(value)] : signed(value, most, dark);
      out.data.set([rgb[0], rgb[1], rgb[2], 255], 4 * (y * wide + x));
    }
  }
  return out;
}

export function largest(numbers: Float32Array): number {
  let most = 1e-6;
  for (const value of numbers) if (Math.abs(value) > most) most = Math.abs(value);
  return most;
}

function span(pixel: number, pixels: number, cells: number): [number, number] {
  const first = Math.floor((pixel * cells) / pixels);
  return [first, Math.max(first + 1, Math.floor(((pixel + 1) * cells) / pixels))];
}
