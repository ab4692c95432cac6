// Which part of an N × M pattern is on screen? Everything is counted in tokens: rows look, columns are looked at.

export interface Size {
  width: number;
  height: number;
}

/** Number of queries and of keys. */
export interface Extent {
  rows: number;
  columns: number;
}

export interface View {
  /** Row and column in the top left corner; may be fractions. */
  row: number;
  column: number;
  /** Pixels of one weight. */
  cell: number;
}

/** The most pixels of one weight. */
export const LARGEST = 40;
/** A pooled cell is drawn at most this large before the next finer level is shown. */
const COARSEST = 3;

/** Get the view of the whole pattern, with its corner at the top left. */
export function wholeView(extent: Extent, size: Size): View {
  return { row: 0, column: 0, cell: smallest(extent, size) };
}

function smallest({ rows, columns }: Extent, { width, height }: Size): number {
  return Math.min(LARGEST, width / Math.max(1, columns), height / Math.max(1, rows));
}

/** Keep a view inside the pattern: no larger or smaller than allowed, and no empty margin where it can be avoided. */
export function clamped(view: View, extent: Extent, size: Size): View {
  const cell = Math.min(LARGEST, Math.max(smallest(extent, size), view.cell));
  const within = (first: number, count: number, pixels: number) => Math.max(0, Math.min(first, count - pixels / cell));
  return {
    row: within(view.row, extent.rows, size.height),
    column: within(view.column, extent.columns, size.width),
    cell,
  };
}

/** Zoom by a factor; the weight under the pixel (x, y) stays there. */
export function zoomed(view: View, factor: number, x: number, y: number): View {
  const cell = view.cell * factor;
  return { row: view.row + y / view.cell - y / cell, column: view.column + x / view.cell - x / cell, cell };
}

/** Move the pattern by some pixels. */
export function panned(view: View, dx: number, dy: number): View {
  return { ...view, row: view.row - dy / view.cell, column: view.column - dx / view.cell };
}

/** Move the view so that a weight is in the middle. */
export function centred(view: View, row: number, column: number, size: Size): View {
  return {
    ...view,
    row: row + 0.5 - size.height / view.cell / 2,
    column: column + 0.5 - size.width / view.cell / 2,
  };
}

/** Move the view as little as needed so that a weight is `margin` pixels inside, if there is room. */
export function revealing(view: View, row: number, column: number, size: Size, margin = 24): View {
  const shift = (first: number, at: number, pixels: number) => {
    const edge = Math.min(margin, pixels / 3) / view.cell;
    if (at < first + edge) return at - edge;
    const last = first + pixels / view.cell;
    return at + 1 > last - edge ? first + at + 1 - last + edge : first;
  };
  return { ...view, row: shift(view.row, row, size.height), column: shift(view.column, column, size.width) };
}

/** Get the weight at a pixel; null outside of the pattern. */
export function weightUnder(view: View, extent: Extent, x: number, y: number): { row: number; column: number } | null {
  const [row, column] = [Math.floor(view.row + y / view.cell), Math.floor(view.column + x / view.cell)];
  const inside = row >= 0 && column >= 0 && row < extent.rows && column < extent.columns;
  return inside ? { row, column } : null;
}

/** Get the level to draw: a cell of level l covers 2^l × 2^l weights, here at most three pixels. */
export function levelOf(cell: number, coarsest: number): number {
  return Math.max(0, Math.min(coarsest, Math.floor(Math.log2(COARSEST / cell))));
}

/** Write a view for the address: the weight in the middle, and how many weights the shorter side shows. */
export function written(view: View, size: Size): number[] {
  const middle = [view.row + size.height / view.cell / 2, view.column + size.width / view.cell / 2];
  return [...middle, Math.min(size.width, size.height) / view.cell].map((value) => Math.round(value * 100) / 100);
}

/** Read a view from the address. */
export function readView([row, column, span]: readonly number[], size: Size): View {
  const cell = Math.min(size.width, size.height) / Math.max(1, span);
  return { row: row - size.height / cell / 2, column: column - size.width / cell / 2, cell };
}
