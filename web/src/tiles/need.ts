// Which tiles does a view need, and what is shown while they are on their way?
import type { Extent, Size, View } from "./view";

/** Cells along a side of a tile. */
export const SIDE = 256;

export interface TileName {
  level: number;
  row: number;
  column: number;
}

export const nameOf = ({ level, row, column }: TileName): string => `${level}/${row}/${column}`;

/** Weights along a side of a tile. */
export const reach = (level: number): number => SIDE * 2 ** level;

/** Get the coarsest level: all cells are in one tile. */
export function topLevel({ rows, columns }: Extent): number {
  let level = 0;
  while (reach(level) < Math.max(rows, columns)) level++;
  return level;
}

/** List the tiles of a level that a view shows, those in the middle first. */
export function tilesIn(view: View, level: number, extent: Extent, size: Size): TileName[] {
  const side = reach(level);
  const bottom = Math.min(extent.rows, view.row + size.height / view.cell);
  const right = Math.min(extent.columns, view.column + size.width / view.cell);
  const out: TileName[] = [];
  for (let row = Math.floor(Math.max(0, view.row) / side); row * side < bottom; row++) {
    for (let column = Math.floor(Math.max(0, view.column) / side); column * side < right; column++)
      out.push({ level, row, column });
  }
  const [midRow, midColumn] = [(view.row + bottom) / 2 / side, (view.column + right) / 2 / side];
  const away = ({ row, column }: TileName) => Math.hypot(row + 0.5 - midRow, column + 0.5 - midColumn);
  return out.sort((a, b) => away(a) - away(b));
}

/** A part of a tile in cells of that tile, which covers another tile. */
export interface Part extends TileName {
  x: number;
  y: number;
  side: number;
}

/** Get the part of a coarser tile that covers a tile. */
export function partOf(tile: TileName, level: number): Part {
  const ratio = 2 ** (level - tile.level);
  const side = SIDE / ratio;
  const [row, column] = [Math.floor(tile.row / ratio), Math.floor(tile.column / ratio)];
  return { level, row, column, x: (tile.column - column * ratio) * side, y: (tile.row - row * ratio) * side, side };
}

/** Get the finest known tile that covers a tile, and which part of it; null if none is known. */
export function standIn(tile: TileName, coarsest: number, known: (tile: TileName) => boolean): Part | null {
  for (let level = tile.level; level <= coarsest; level++) {
    const part = partOf(tile, level);
    if (known(part)) return part;
  }
  return null;
}

/** Get the tile of a level that holds a weight. */
export function tileAt(level: number, row: number, column: number): TileName {
  return { level, row: Math.floor(row / reach(level)), column: Math.floor(column / reach(level)) };
}

/** Get the first and the last token of a cell along one axis. */
export function spanOf(level: number, at: number, count: number): [number, number] {
  const first = Math.floor(at / 2 ** level) * 2 ** level;
  return [first, Math.min(count, first + 2 ** level) - 1];
}
