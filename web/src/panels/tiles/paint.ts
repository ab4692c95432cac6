// How is the map of a long input drawn?
import type { Rgb } from "../../draw/colour";
import { sized } from "../../draw/painter";
import type { Pooled } from "../../tiles/cells";
import { labelsOn, LINE } from "../../tiles/labels";
import { reach, SIDE, type TileName } from "../../tiles/need";
import type { Size, View } from "../../tiles/view";
import type { Tiling } from "./tiling.svelte";

/** Room for the names of tokens: left of the rows, above the columns. */
export const LEFT = 104;
export const TOP = 94;

const MONO = 'ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace';
/** Letters that fit beside an axis. */
const LETTERS = 12;

export interface Look {
  pooled: Pooled;
  /** Whether the colours are those of numbers with signs. */
  signed: boolean;
  scale: readonly Rgb[];
  dark: boolean;
}

/** Clear the canvas and draw the tiles in view; what is not there yet is drawn from coarser tiles. */
export function drawTiles(
  canvas: HTMLCanvasElement,
  tiling: Tiling,
  tiles: TileName[],
  frame: { view: View; size: Size },
  look: Look,
): CanvasRenderingContext2D {
  const { view, size } = frame;
  const context = sized(canvas, size.width + LEFT, size.height + TOP);
  context.save();
  context.beginPath();
  context.rect(LEFT, TOP, size.width, size.height);
  context.clip();
  context.imageSmoothingEnabled = false;
  for (const tile of tiles) drawTile(context, tiling, tile, view, look);
  context.restore();
  return context;
}

function drawTile(context: CanvasRenderingContext2D, tiling: Tiling, tile: TileName, view: View, look: Look): void {
  const part = tiling.standIn(tile);
  const known = part && tiling.get(part);
  if (!known) return;
  const side = reach(tile.level);
  const { rows, columns } = tiling.extent;
  const [top, left] = [tile.row * side, tile.column * side];
  const [bottom, right] = [Math.min(rows, top + side), Math.min(columns, left + side)];
  const cell = 2 ** part.level;
  // Edges on whole pixels: two tiles must not leave a seam.
  const x = (column: number) => onPixel(LEFT + (column - view.column) * view.cell);
  const y = (row: number) => onPixel(TOP + (row - view.row) * view.cell);
  context.drawImage(
    known.pictureOf(look),
    left / cell - part.column * SIDE,
    top / cell - part.row * SIDE,
    (right - left) / cell,
    (bottom - top) / cell,
    x(left),
    y(top),
    x(right) - x(left),
    y(bottom) - y(top),
  );
}

const onPixel = (place: number): number => {
  const ratio = window.devicePixelRatio || 1;
  return Math.round(place * ratio) / ratio;
};

/** What stands beside the axes. */
export interface Axes {
  rowText: (position: number) => string;
  columnText: (position: number) => string;
  ink: string;
  faint: string;
}

/** Write tokens beside both axes; positions too, where not every token has room. */
export function drawAxes(
  context: CanvasRenderingContext2D,
  extent: { rows: number; columns: number },
  { view, size }: { view: View; size: Size },
  { rowText, columnText, ink, faint }: Axes,
): void {
  const every = view.cell >= LINE;
  context.font = `11px ${MONO}`;
  context.fillStyle = every ? ink : faint;
  const words = (position: number, text: string) => clipped(every ? text : `${position.toLocaleString("en")} ${text}`);
  context.textAlign = "right";
  for (const { position, at } of labelsOn(view.row, view.cell, size.height, extent.rows))
    if (at >= 4) context.fillText(words(position, rowText(position)), LEFT - 6, TOP + at + 4);
  context.textAlign = "left";
  for (const { position, at } of labelsOn(view.column, view.cell, size.width, extent.columns)) {
    if (at < 4) continue;
    context.save();
    context.translate(LEFT + at + 4, TOP - 6);
    context.rotate(-Math.PI / 2);
    context.fillText(words(position, columnText(position)), 0, 0);
    context.restore();
  }
}

export const clipped = (text: string): string =>
  [...text].length > LETTERS ? `${[...text].slice(0, LETTERS - 1).join("")}…` : text;
