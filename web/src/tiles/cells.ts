// What is in a cell, and which colour has it?
import type { Rgb } from "../draw/colour";
import { UNIT, type Picks, type TileCells } from "../source/wire";
import type { TileName } from "./need";
import { SIDE, spanOf } from "./need";
import type { Extent } from "./view";

export type Pooled = Picks["pooled"];

/** The cells of one tile, and where they lie. */
export interface Cells extends TileName {
  packet: TileCells;
  /** Every step-th row was read; 1: all rows. */
  step: number;
}

/** Steps of the colour scale below this cannot be seen on the page. */
const FAINT = 8;
/** The weight of the faintest colour. */
export const FAINTEST_SEEN = (FAINT / 255) ** 2;

/** What one cell holds, and which tokens it covers. */
export interface Reading {
  rows: [number, number];
  columns: [number, number];
  strongest: number;
  mass: number;
  mean: number;
  sampled: boolean;
}

/** Get the factor that makes a pooled number a weight per row, which the colours show: 0 to 1. */
function factorOf({ packet, level }: Cells, pooled: Pooled): number {
  return pooled === "strongest" ? packet.peak : packet.most / 2 ** level;
}

/** Get the colour step of every cell, 0 to 255: the root of its strongest weight, or of its mass per row. */
export function stepsOf(cells: Cells, pooled: Pooled): Uint8Array {
  const { data } = pooled === "strongest" ? cells.packet.strongest : cells.packet.mass;
  const scale = (255 * Math.sqrt(factorOf(cells, pooled))) / UNIT;
  const out = new Uint8Array(data.length);
  for (let at = 0; at < data.length; at++) out[at] = Math.min(255, Math.round(data[at] * scale));
  return out;
}

/** Write the pixels of a tile, one a cell (RGBA). */
export function pixelsOf(steps: Uint8Array, scale: readonly Rgb[]): Uint8ClampedArray<ArrayBuffer> {
  const colours = Uint32Array.from(scale, ([r, g, b]) => (255 << 24) | (b << 16) | (g << 8) | r);
  const out = new Uint32Array(steps.length);
  for (let at = 0; at < steps.length; at++) out[at] = colours[steps[at]];
  return new Uint8ClampedArray(out.buffer);
}

/** Read the cell of a weight; null if it is not in this tile. */
export function readCell(cells: Cells, row: number, column: number, extent: Extent): Reading | null {
  const { packet, level } = cells;
  const [high, wide] = packet.strongest.shape;
  const y = Math.floor(row / 2 ** level) - cells.row * SIDE;
  const x = Math.floor(column / 2 ** level) - cells.column * SIDE;
  if (y < 0 || x < 0 || y >= high || x >= wide) return null;
  const [rows, columns] = [spanOf(level, row, extent.rows), spanOf(level, column, extent.columns)];
  const value = (data: Uint16Array, most: number) => (data[y * wide + x] / UNIT) ** 2 * most;
  const mass = value(packet.mass.data, packet.most);
  return {
    rows,
    columns,
    strongest: value(packet.strongest.data, packet.peak),
    mass,
    mean: mass / ((rows[1] - rows[0] + 1) * (columns[1] - columns[0] + 1)),
    sampled: cells.step > 1,
  };
}

/** Sum the attention of some tiles: all of it, and that in cells with a colour that can be seen. */
export function seenOf(tiles: readonly Cells[], pooled: Pooled): { seen: number; all: number } {
  const out = { seen: 0, all: 0 };
  for (const cells of tiles) {
    const steps = stepsOf(cells, pooled);
    const { data } = cells.packet.mass;
    const unit = cells.packet.most / UNIT ** 2;
    for (let at = 0; at < data.length; at++) {
      const mass = data[at] * data[at] * unit;
      out.all += mass;
      if (steps[at] >= FAINT) out.seen += mass;
    }
  }
  return out;
}
