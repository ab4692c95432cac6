// What is in a cell, and which colour has it?
import type { Rgb } from "../draw/colour";
import { factorFor, fromRoot, wholeOf, type Roots } from "../source/roots";
import { SIGNED_UNIT, UNIT, type Picks, type TileCells } from "../source/wire";
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

/** Tell whether the strongest numbers of the cells have signs: contributions. */
export const isSigned = ({ strongest }: TileCells): boolean => strongest.data instanceof Int16Array;

/** The step of zero where numbers have signs. */
export const ZERO = 128;

/** Get the colour step of every cell, 0 to 255: the root of its strongest weight, or of its mass per row. */
export function stepsOf(cells: Cells, pooled: Pooled): Uint8Array {
  const { data } = pooled === "strongest" ? cells.packet.strongest : cells.packet.mass;
  if (data instanceof Int16Array) return signedSteps(data, Math.sqrt(cells.packet.peak));
  const scale = (255 * Math.sqrt(factorOf(cells, pooled))) / UNIT;
  const out = new Uint8Array(data.length);
  for (let at = 0; at < data.length; at++) out[at] = Math.min(255, Math.round(data[at] * scale));
  return out;
}

/** Get steps of numbers with signs: 128 is zero, 255 is 1 or more, 1 is −1 or less. */
function signedSteps(data: Int16Array, root: number): Uint8Array {
  const scale = (127 * root) / SIGNED_UNIT;
  return Uint8Array.from(data, (value) => ZERO + Math.max(-127, Math.min(127, Math.round(value * scale))));
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
  const value = (data: Roots, most: number) => fromRoot(data[y * wide + x], factorFor(data, most));
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

/** A part of the pattern, in weights; the ends are not in it. */
export interface Bounds {
  top: number;
  left: number;
  bottom: number;
  right: number;
}

export interface Seen {
  seen: number;
  all: number;
}

/** Sum the attention of the cells in view: all of it, and that of cells with a colour that can be seen. */
export function seenOf(tiles: readonly Cells[], pooled: Pooled, bounds: Bounds): Seen {
  const out = { seen: 0, all: 0 };
  for (const cells of tiles) addSeen(out, cells, pooled, bounds);
  return out;
}

function addSeen(out: Seen, cells: Cells, pooled: Pooled, bounds: Bounds): void {
  const { packet, level } = cells;
  const [high, wide] = packet.mass.shape;
  const shown = (pooled === "strongest" ? packet.strongest : packet.mass).data;
  const least = ((FAINT - 0.5) / 255 / Math.sqrt(factorOf(cells, pooled))) * wholeOf(shown);
  const unit = factorFor(packet.mass.data, packet.most);
  const range = (first: number, end: number, tile: number, count: number): [number, number] => [
    Math.max(0, Math.floor(first / 2 ** level) - tile * SIDE),
    Math.min(count, Math.ceil(end / 2 ** level) - tile * SIDE),
  ];
  const [top, bottom] = range(bounds.top, bounds.bottom, cells.row, high);
  const [left, right] = range(bounds.left, bounds.right, cells.column, wide);
  for (let y = top; y < bottom; y++) {
    for (let at = y * wide + left; at < y * wide + right; at++) {
      const mass = fromRoot(packet.mass.data[at], unit);
      out.all += mass;
      if (Math.abs(shown[at]) >= least) out.seen += mass;
    }
  }
}
