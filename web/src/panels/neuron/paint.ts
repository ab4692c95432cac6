// How are the columns of the Neurons view drawn, on the canvas and in the exported figure?
import { css, opacity, signed, tintOf, type Rgb } from "../../draw/colour";
import type { Columns } from "./columns";
import { gathered, strongest, type Work } from "./work";

/** What both the canvas and the figure can draw. */
export interface Brush {
  cell(x: number, y: number, width: number, height: number, colour: string, alpha?: number): void;
  line(x0: number, y0: number, x1: number, y1: number, colour: Rgb, alpha: number): void;
  number(x: number, y: number, text: string): void;
}

export interface Look {
  dark: boolean;
  colour: Rgb;
  row: number;
  top: number;
  first: number;
  last: number;
  numbers: boolean;
}

export function paint(brush: Brush, work: Work, columns: Columns, look: Look): void {
  const { row, top } = look;
  const y = (at: number) => at * row - top;
  const high = Math.max(1, row - (row > 6 ? 2 : 0));
  const strip = (x: number, numbers: Float32Array, start: number, at: number, full: number, alpha = 1) => {
    for (let place = 0; place * columns.gather < work.width; place++) {
      const value = numbers[start + strongest(numbers, start, gathered(work, columns, place))];
      brush.cell(x + place * columns.cell, y(at), columns.cell + 0.3, high, css(signed(value, full, look.dark)), alpha);
    }
  };
  const { made, vectors, full } = work;
  for (let at = look.first; at <= look.last; at++) {
    if (at < vectors.query.shape[0])
      strip(columns.query, vectors.query.data, at * work.width, at, full.vector, work.rows.includes(at) ? 1 : 0.22);
    if (at >= work.keys) continue;
    const seen = made.seen[at] === 1;
    strip(columns.key, vectors.key.data, at * work.width, at, full.vector, seen ? 1 : 0.25);
    strip(columns.product, work.product, at * work.width, at, full.product, seen ? 1 : 0.12);
    if (!seen) continue;
    bars(brush, work, columns, look, at, y(at), high);
  }
  const middle = (at: number) => (at + 0.5) * row - top;
  made.weight.forEach((weight, at) => {
    const colour = tintOf(work.differs ? null : look.colour, weight);
    const alpha = opacity(weight) / Math.sqrt(work.rows.length);
    if (alpha > 0.01)
      for (const from of work.rows)
        brush.line(columns.fan.from, middle(from), columns.fan.to, middle(at), colour, alpha);
  });
}

function bars(brush: Brush, work: Work, columns: Columns, look: Look, at: number, y: number, high: number): void {
  const { made, full } = work;
  const room = columns.bar - 44;
  const half = room / 2;
  const dot = made.dot[at];
  brush.cell(
    columns.dot + half + Math.min(0, (dot / full.dot) * half),
    y,
    Math.max(1, (Math.abs(dot) / full.dot) * half),
    high,
    css(signed(dot, Math.abs(dot) || 1, look.dark)),
  );
  const bar = (x: number, value: number, share: number) =>
    brush.cell(
      x,
      y,
      Math.max(0.5, Math.abs(share) * room),
      high,
      css(tintOf(work.differs || (work.share && value < 0) ? null : look.colour, value)),
    );
  bar(columns.soft, made.weight[at], made.weight[at]);
  const write = (x: number, value: number, digits: number) =>
    look.numbers && brush.number(x, y + high / 2, value.toFixed(digits).replace("-", "−"));
  write(columns.dot + columns.bar, dot, Math.abs(dot) >= 100 ? 0 : 1);
  write(columns.soft + columns.bar, made.weight[at], 3);
  const { value } = work.vectors;
  if (columns.value === null || columns.moved === null || !value || !work.moved) return;
  const width = value.shape[1];
  const cells = Math.min(width, Math.round(columns.strip / columns.cell));
  const cell = columns.strip / cells;
  for (let place = 0; place < cells; place++) {
    const [from, to] = [place, place + 1].map((edge) => Math.floor((edge * width) / cells));
    const neurons = Uint32Array.from({ length: to - from }, (_, d) => from + d);
    const number = value.data[at * width + strongest(value.data, at * width, neurons)];
    brush.cell(columns.value + place * cell, y, cell + 0.3, high, css(signed(number, full.value, look.dark)));
  }
  bar(columns.moved, work.moved[at], work.moved[at] / full.moved);
  write(columns.moved + columns.bar, work.moved[at], 2);
}
