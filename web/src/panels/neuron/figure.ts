// How is the Neurons view exported?
import type { Desk } from "../../desk/desk.svelte";
import { hex, PAPER, type Rgb } from "../../draw/colour";
import { Figure } from "../../draw/svg";
import type { Unit } from "../../weights/units";
import { columnWidth } from "../parts/geometry";
import { figureBrush } from "./brushes";
import { columnsFor, WIDEST_DIRECTION } from "./columns";
import { paint } from "./paint";
import type { Work } from "./work";

const ROW = 20;
const TOP = 52;
const WIDE = 1180;

export function neuronFigure(
  desk: Desk,
  work: Work,
  drawn: { rowUnits: Unit[]; columnUnits: Unit[]; colour: Rgb },
): string {
  const { rowUnits, columnUnits, colour } = drawn;
  const count = Math.max(rowUnits.length, columnUnits.length);
  const values = (desk.picks.valueWeighted || desk.as !== "") && work.moved !== null;
  const columns = columnsFor(
    WIDE,
    work.width,
    columnWidth(rowUnits, 500),
    columnWidth(columnUnits, 500),
    values,
    work.directions === undefined ? undefined : WIDEST_DIRECTION,
  );
  const figure = new Figure(
    columns.width + 24,
    TOP + count * ROW + 30,
    hex(PAPER[desk.dark ? "dark" : "light"]),
    desk.dark ? "#e6e7ea" : "#1b1d22",
  );
  figure.text(
    12,
    20,
    `${desk.focus} · ${work.rows
      .map((row) => rowUnits[row].text)
      .join(", ")
      .slice(0, 120)}${work.rows.length > 1 ? ` look, ${desk.picks.together}` : " looks"}`,
    { weight: 600 },
  );
  const named: [number, string][] = [
    [columns.query, "query q"],
    [columns.key, "key k"],
    [columns.product, "q × k"],
    [columns.dot, "q · k"],
    [columns.soft, "softmax"],
  ];
  if (columns.value !== null && columns.moved !== null)
    named.push([columns.value, "value v"], [columns.moved, work.share || "weight·‖v‖"]);
  named.forEach(([x, text]) => figure.text(12 + x, 42, text, { size: 11 }));
  for (const row of work.rows) figure.rect(12, TOP + row * ROW, columns.query, ROW, "#FFC300", 0.22);
  paint(figureBrush(figure, 12, TOP), work, columns, {
    dark: desk.dark,
    colour,
    row: ROW,
    top: 0,
    first: 0,
    last: count - 1,
    numbers: true,
  });
  rowUnits.forEach((unit, at) =>
    figure.text(12 + columns.query - 8, TOP + (at + 0.5) * ROW + 4, unit.text, { mono: true, anchor: "end" }),
  );
  columnUnits.forEach((unit, at) =>
    figure.text(12 + columns.end + 8, TOP + (at + 0.5) * ROW + 4, unit.text, { mono: true }),
  );
  const { vector, product, dot } = work.full;
  figure.text(
    12,
    TOP + count * ROW + 20,
    `full colour: q, k ±${vector.toPrecision(2)} · q × k ±${product.toPrecision(2)} · q · k ±${dot.toPrecision(2)}; blue above zero, orange below${columns.gather > 1 ? `; one cell: the strongest of ${columns.gather} neurons` : ""}`,
    { size: 11 },
  );
  return figure.toString();
}
