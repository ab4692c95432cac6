// How is the Lines view exported?
import type { Desk } from "../../desk/desk.svelte";
import { batches, type LineSet } from "../../draw/batch";
import { css, hex, opacity, PAPER, tintOf } from "../../draw/colour";
import { depthOf } from "../../draw/ink";
import { spreadOf } from "../../draw/painter";
import { Figure } from "../../draw/svg";
import { linesOfTokens } from "../../weights/lines";
import { together } from "../../weights/partners";
import type { HeadRows } from "../../weights/rows";
import type { Unit } from "../../weights/units";
import { keptOf, placesOf } from "../../desk/token_set";
import { columnWidth } from "../parts/geometry";

export interface Strip {
  title: string;
  rowUnits: Unit[];
  columnUnits: Unit[];
  rows: HeadRows[];
  sets: LineSet[];
  signed: boolean;
}

const ROW = 20;
const TOP = 44;
const WIDE = 420;

export function linesFigure(desk: Desk, strips: Strip[]): string {
  const rows = Math.max(...strips.flatMap((strip) => [strip.rowUnits.length, strip.columnUnits.length]));
  const paper = hex(PAPER[desk.dark ? "dark" : "light"]);
  const ink = desk.dark ? "#e6e7ea" : "#1b1d22";
  const figure = new Figure(strips.length * WIDE + 24, TOP + rows * ROW + 34, paper, ink);
  strips.forEach((strip, at) => drawStrip(figure, desk, strip, 12 + at * WIDE));
  const heads = desk.picks.heads;
  heads.slice(0, 16).forEach((name, at) => {
    const x = 12 + at * 62;
    figure.rect(x, TOP + rows * ROW + 14, 10, 10, css(desk.colours[desk.heads[at]]));
    figure.text(x + 14, TOP + rows * ROW + 23, name, { size: 11 });
  });
  return figure.toString();
}

function drawStrip(figure: Figure, desk: Desk, strip: Strip, x: number): void {
  const wide = WIDE - 24;
  const left = columnWidth(strip.rowUnits, wide);
  const right = columnWidth(strip.columnUnits, wide);
  const middle = (at: number) => TOP + (at + 0.5) * ROW;
  figure.text(x + wide / 2, 18, strip.title.slice(0, 48), { anchor: "middle", weight: 600 });
  const token = keptOf({ ...desk.picks, pinned: true });
  const active = placesOf(token?.side === "key" ? strip.columnUnits : strip.rowUnits, token);
  if (token && active.length > 0) {
    const far = token.side === "query" ? { x: x + wide - right, wide: right } : { x, wide: left };
    strip.rows.forEach((head, place) =>
      together(head, token.side, active, desk.picks.together).forEach((weight, at) => {
        if (opacity(weight) > 0.01) {
          figure.rect(
            far.x + (place * far.wide) / strip.rows.length,
            TOP + at * ROW + 1,
            far.wide / strip.rows.length,
            ROW - 2,
            css(tintOf(strip.sets[place].colour, weight)),
            0.85 * opacity(weight),
          );
        }
      }),
    );
    const [start, across] = token.side === "query" ? [x, left] : [x + wide - right, right];
    for (const at of active) figure.rect(start, TOP + at * ROW, across, ROW, "#FFC300", 0.35);
  }
  const sets =
    token && active.length > 0
      ? strip.sets.map((set) => ({ ...set, lines: linesOfTokens(set.lines, token.side, active) }))
      : strip.sets;
  for (const batch of batches(sets).reverse()) {
    const lower = batch.lane * spreadOf(ROW, strip.sets.length);
    const alpha = active.length === 0 ? 1 - Math.exp(-depthOf(batch.alpha) * desk.strength) : batch.alpha;
    figure.lines({ ...batch, alpha }, (from, to) => [
      x + left,
      middle(from) + lower,
      x + wide - right,
      middle(to) + lower,
    ]);
  }
  const grey = desk.dark ? "#9a9fa8" : "#6b7078";
  const words = (unit: Unit, at: number, edge: number, anchor: string) =>
    figure.text(edge, middle(at) + 4, unit.text, {
      mono: true,
      size: 12,
      anchor,
      fill: unit.special ? grey : undefined,
    });
  strip.rowUnits.forEach((unit, at) => words(unit, at, x + left - 6, "end"));
  strip.columnUnits.forEach((unit, at) => words(unit, at, x + wide - right + 6, "start"));
}
