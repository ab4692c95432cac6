// How is the heat-map exported?
import type { Desk } from "../../desk/desk.svelte";
import { css, heatPlace, hex, PAPER, signed, type Rgb } from "../../draw/colour";
import { Figure } from "../../draw/svg";
import { dense, type HeadRows } from "../../weights/rows";
import type { Unit } from "../../weights/units";
import { columnWidth } from "../parts/geometry";
import { largest } from "./maps";

interface Shown {
  title: string;
  head: HeadRows;
  rowUnits: Unit[];
  columnUnits: Unit[];
  signed: boolean;
}

export function heatFigure(desk: Desk, maps: Shown[], scale: Rgb[]): string {
  const n = Math.max(...maps.map((map) => map.head.n));
  const m = Math.max(...maps.map((map) => map.head.m));
  const cell = Math.max(2, Math.min(18, 900 / n));
  const letters = cell >= 9;
  const left = letters ? columnWidth(maps[0].rowUnits, 600) : 10;
  const top = (letters ? columnWidth(maps[0].columnUnits, 600) : 10) + 22;
  const across = Math.ceil(Math.sqrt(maps.length));
  const wide = left + m * cell + 20;
  const high = top + n * cell + 16;
  const figure = new Figure(
    across * wide,
    Math.ceil(maps.length / across) * high,
    hex(PAPER[desk.dark ? "dark" : "light"]),
    desk.dark ? "#e6e7ea" : "#1b1d22",
  );
  maps.forEach((map, at) => {
    const x = (at % across) * wide + left;
    const y = Math.floor(at / across) * high + top;
    figure.text(x, y - top + 16, map.title, { weight: 600 });
    for (const [colour, cells] of coloured(map, scale, desk.dark)) {
      figure.cells(
        cells.map((place) => [x + (place % map.head.m) * cell, y + Math.floor(place / map.head.m) * cell] as const),
        cell,
        cell,
        colour,
      );
    }
    figure.frame(x, y, map.head.m * cell, map.head.n * cell, desk.dark ? "#343943" : "#dfe1e6");
    if (!letters) return;
    map.rowUnits.forEach((unit, row) =>
      figure.text(x - 6, y + (row + 0.5) * cell + 4, unit.text, { mono: true, size: 11, anchor: "end" }),
    );
    map.columnUnits.forEach((unit, column) =>
      figure.text(x + (column + 0.5) * cell + 4, y - 6, unit.text, { mono: true, size: 11, turn: -90 }),
    );
  });
  return figure.toString();
}

/** Group the cells by colour, in 64 steps; cells of weight 0 are not drawn. */
function coloured(map: Shown, scale: Rgb[], dark: boolean): Map<string, number[]> {
  const all = dense(map.head);
  const most = largest(all);
  const out = new Map<string, number[]>();
  all.forEach((value, place) => {
    const step = map.signed ? Math.round((32 * value) / most) / 32 : Math.round(heatPlace(value) / 4) * 4;
    if (step === 0) return;
    const colour = css(map.signed ? signed(step, 1, dark) : scale[Math.min(255, step)]);
    const cells = out.get(colour);
    if (cells) cells.push(place);
    else out.set(colour, [place]);
  });
  return out;
}
