// How is the All heads view exported?
import type { Desk } from "../../desk/desk.svelte";
import { batches } from "../../draw/batch";
import { headColours, hex, PAPER } from "../../draw/colour";
import { Figure } from "../../draw/svg";
import type { LayerInfo } from "../../source/wire";
import { everything, linesOf } from "../../weights/lines";
import type { HeadRows } from "../../weights/rows";
import { cellAt, type Grid } from "./grid";

interface Cell {
  layer: LayerInfo;
  row: number;
  head: number;
  column: number;
}

/** The most lines of a thumbnail in a figure; the faintest beyond that are left out. */
const MOST = 600;

export function modelFigure(
  desk: Desk,
  cells: Cell[],
  layers: LayerInfo[],
  heads: number[],
  grid: Grid,
  rowsOf: (cell: Cell) => HeadRows | null,
  signed: boolean,
): string {
  const end = cellAt(grid, layers.length, heads.length);
  const figure = new Figure(
    end.x + 10,
    end.y + 30,
    hex(PAPER[desk.dark ? "dark" : "light"]),
    desk.dark ? "#e6e7ea" : "#1b1d22",
  );
  const colours = headColours(Math.max(1, ...layers.map((layer) => layer.heads)), desk.dark);
  const { width, height } = grid.cell;
  heads.forEach((head, column) =>
    figure.text(cellAt(grid, 0, column).x + width / 2, 15, String(head), { size: 11, anchor: "middle" }),
  );
  layers.forEach((layer, row) =>
    figure.text(20, cellAt(grid, row, 0).y + height / 2 + 4, String(layer.layer), { size: 11, anchor: "end" }),
  );
  for (const cell of cells) {
    const corner = cellAt(grid, cell.row, cell.column);
    figure.frame(corner.x, corner.y, width, height, desk.dark ? "#343943" : "#dfe1e6");
    const rows = rowsOf(cell);
    if (!rows) continue;
    const step = height / Math.max(rows.n, rows.m);
    const lines = linesOf(rows, everything);
    const least =
      Float32Array.from(lines.weight.subarray(0, lines.count), Math.abs).sort()[Math.max(0, lines.count - MOST)] ?? 0;
    const strong = linesOf(rows, { ...everything, threshold: least });
    for (const batch of batches([{ lines: strong, colour: signed ? null : colours[cell.head] }]).reverse()) {
      figure.lines(
        batch,
        (from, to) => [corner.x, corner.y + (from + 0.5) * step, corner.x + width, corner.y + (to + 0.5) * step],
        1,
      );
    }
  }
  figure.text(grid.left, end.y + 16, `${desk.about.model || desk.about.title}: layers down, heads across`, {
    size: 11,
  });
  return figure.toString();
}
