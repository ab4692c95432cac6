// What is drawn over the points? Frames, titles, lines to the strongest keys, names of tokens, rings.
import { css, opacity, PAPER } from "../../draw/colour";
import type { Cell } from "../../draw/cloud";
import { sized } from "../../draw/painter";
import { onScreen } from "../../map/camera";
import { PAIRS } from "../../map/colouring";
import type { TrueNear } from "../../map/partners";
import { HIGH, placed, type Label, type Wish } from "../../map/labels";
import { panelBox } from "../../map/plane";
import { MARKS, type Grade } from "../../map/verdict";
import type { Stage } from "./stage";
import { clipped as cut, isolated } from "../../draw/letters";

export interface Line {
  from: number;
  to: number;
  weight: number;
}

export interface Over {
  dark: boolean;
  palette: keyof typeof PAIRS;
  /** Numbers of heads. */
  focus: number;
  hoverHead: number;
  hover: { head: number; at: number } | null;
  picked: number;
  marks: Uint8Array | null;
  lines: Line[];
  /** The partners of one point to mark, in truth and on the map. */
  trueNear: TrueNear | null;
  labels: boolean;
  /** Whether names are coloured by side, as the dots are. */
  sides: boolean;
}

const PICKED = "#FFC300";
export const MONO = '11.5px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace';

const inkOf = (dark: boolean) =>
  dark
    ? { text: "#e6e7ea", faint: "#a0a6b0", line: "#343943" }
    : { text: "#1b1d22", faint: "#5d626b", line: "#dfe1e6" };

/** The colours of grades; the marks differ too, for those who do not see the colours. `map.css` has the same ones. */
const GRADES = {
  light: { most: "#146c43", part: "#8a5a00", little: "#a3321f" },
  dark: { most: "#6fd6a0", part: "#f0bd57", little: "#ff9b8a" },
};
export const gradeInk = (grade: Grade, dark: boolean): string =>
  grade === "unknown" ? inkOf(dark).faint : GRADES[dark ? "dark" : "light"][grade];

export const trueInk = (dark: boolean): string => (dark ? "#ffb454" : "#c25e00");
export const nearInk = (dark: boolean): string => (dark ? "#7db3ff" : "#1d5fd1");

export function paintOver(canvas: HTMLCanvasElement, stage: Stage, over: Over): void {
  const { size, data } = stage;
  const context = sized(canvas, size.width, size.height, stage.ratio);
  if (!data) return;
  frames(context, stage, over);
  if (stage.head >= 0) {
    lines(context, stage, over);
    if (over.labels && !stage.patched) names(context, stage, over);
    if (over.trueNear) partners(context, stage, over.trueNear, over.dark);
    if (over.picked >= 0) ring(context, stage, stage.head, over.picked, PICKED, 3);
  }
  if (over.hover) ring(context, stage, over.hover.head, over.hover.at, inkOf(over.dark).text, 1.5);
}

function frames(context: CanvasRenderingContext2D, stage: Stage, over: Over): void {
  const { data, camera } = stage;
  if (!data) return;
  const ink = inkOf(over.dark);
  const side = camera.scale;
  const large = side > 0.9 * Math.min(stage.size.width, stage.size.height);
  const cells = stage.cells().filter(({ head }) => head !== stage.head || !large);
  for (const { head, clear } of cells) {
    const { x, y, width, height } = panelBox(stage.plane, camera, head);
    const here = head === over.focus && stage.head < 0;
    context.globalAlpha = clear;
    context.strokeStyle = here ? PICKED : head === over.hoverHead ? ink.text : ink.line;
    context.lineWidth = here ? 2 : 1;
    context.strokeRect(x, y, width, height);
  }
  if (lettersOf(stage) > 0) titles(context, stage, cells, over.dark);
  context.globalAlpha = 1;
  if (stage.head < 0) rowNames(context, stage, ink);
}

/** Get the letter size of titles; 0 where panels are too small for titles. */
export function lettersOf({ plane, camera }: Stage): number {
  const room = (plane.pitch.height - plane.panel.height) * camera.scale;
  if (plane.titled) return room < 11 ? 0 : Math.min(12, 0.68 * room);
  return camera.scale < 72 ? 0 : 11;
}

/** Get the baseline of a panel's title: above the panel, or inside where there is no room above. */
export const titleLine = ({ plane }: Stage, top: number, letters: number): number =>
  plane.titled ? top - 3 : top + letters + 2;

/** Draw all names, then all numbers: each change of the font is slow. */
function titles(context: CanvasRenderingContext2D, stage: Stage, cells: Cell[], dark: boolean): void {
  const { data, camera, plane } = stage;
  const ink = inkOf(dark);
  if (!data) return;
  const letters = lettersOf(stage);
  context.textBaseline = "alphabetic";
  context.font = `600 ${letters}px system-ui, sans-serif`;
  context.textAlign = "left";
  context.fillStyle = ink.text;
  const boxes = cells.map(({ head, clear }) => {
    const name = data.names[head].replace(/^.*\./, "");
    const { x, y, width } = panelBox(plane, camera, head);
    const line = titleLine(stage, y, letters);
    context.globalAlpha = clear;
    context.fillText(name, x + 2, line);
    return { right: x + width - 2, line, room: width - context.measureText(name).width - 6 };
  });
  context.font = `${letters * 0.92}px system-ui, sans-serif`;
  context.textAlign = "right";
  const widest = context.measureText(`${MARKS.part}100`).width;
  cells.forEach(({ head, clear }, at) => {
    const { right, line, room } = boxes[at];
    if (room < widest) return;
    context.globalAlpha = clear;
    const { grade, short } = data.verdicts[head];
    context.fillStyle = gradeInk(grade, dark);
    context.fillText(MARKS[grade] + short, right, line);
  });
}

/** Place the names of layers left of each block and, where panels have no titles, of heads above it (pixels). */
export function lineNames(stage: Stage): { text: string; x: number; y: number; anchor: "end" | "middle" }[] {
  const { plane, camera } = stage;
  const [wide, high] = [plane.panel.width * camera.scale, plane.panel.height * camera.scale];
  const left = (wide - camera.scale) / 2;
  const step = Math.ceil(20 / (plane.pitch.width * camera.scale));
  const layers = plane.lines.map(({ at, layer }) => {
    const { x, y } = onScreen(camera, at);
    return { text: `L${layer}`, x: x - left - 6, y: y + camera.scale / 2, anchor: "end" as const };
  });
  if (plane.titled) return layers;
  const heads = plane.tops
    .filter(({ head }) => head % step === 0)
    .map(({ at, head }) => {
      const { x, y } = onScreen(camera, at);
      const top = y - (high - camera.scale) / 2;
      return { text: `H${head}`, x: x + camera.scale / 2, y: top - 8, anchor: "middle" as const };
    });
  return [...layers, ...heads];
}

function rowNames(context: CanvasRenderingContext2D, stage: Stage, ink: { faint: string }): void {
  context.fillStyle = ink.faint;
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  for (const { text, x, y, anchor } of lineNames(stage)) {
    context.textAlign = anchor === "end" ? "right" : "center";
    context.fillText(text, x, y);
  }
}

function lines(context: CanvasRenderingContext2D, stage: Stage, { lines: all, dark }: Over): void {
  context.strokeStyle = dark ? "#ffd34d" : "#e0a800";
  context.lineWidth = 1.4;
  for (const { from, to, weight } of all) {
    const [a, b] = [stage.where(stage.head, from), stage.where(stage.head, to)];
    context.globalAlpha = Math.max(0.15, opacity(weight));
    context.beginPath();
    context.moveTo(a.x, a.y);
    context.lineTo(b.x, b.y);
    context.stroke();
  }
  context.globalAlpha = 1;
}

/** Mark the true strongest partners by circles with lines, the nearest by squares with dashes. */
function partners(
  context: CanvasRenderingContext2D,
  stage: Stage,
  { at, strongest, nearest }: TrueNear,
  dark: boolean,
): void {
  const from = stage.where(stage.head, at);
  context.lineWidth = 2;
  const marked = (
    list: readonly { at: number }[],
    colour: string,
    dashes: number[],
    mark: (x: number, y: number) => void,
  ) => {
    context.strokeStyle = colour;
    for (const partner of list) {
      if (partner.at < 0) continue;
      const to = stage.where(stage.head, partner.at);
      context.setLineDash(dashes);
      context.beginPath();
      context.moveTo(from.x, from.y);
      context.lineTo(to.x, to.y);
      context.stroke();
      context.setLineDash([]);
      context.beginPath();
      mark(to.x, to.y);
      context.stroke();
    }
  };
  marked(strongest, trueInk(dark), [], (x, y) => context.arc(x, y, 8.5, 0, 2 * Math.PI));
  marked(nearest, nearInk(dark), [5, 4], (x, y) => context.rect(x - 11, y - 11, 22, 22));
}

function names(context: CanvasRenderingContext2D, stage: Stage, over: Over): void {
  const { data } = stage;
  if (!data) return;
  context.font = MONO;
  context.textAlign = "left";
  context.textBaseline = "middle";
  const ink = inkOf(over.dark);
  const paper = css(PAPER[over.dark ? "dark" : "light"]);
  for (const label of chosen(context, stage, over)) {
    const strong = !over.marks || over.marks[label.at];
    context.lineWidth = 3;
    context.lineJoin = "round";
    context.globalAlpha = 0.8;
    context.strokeStyle = paper;
    context.strokeText(label.text, label.left, label.top + HIGH / 2);
    context.globalAlpha = strong ? 1 : 0.45;
    context.fillStyle = data.special[label.at]
      ? ink.faint
      : over.marks || !over.sides
        ? ink.text
        : sideInk(over, label.at < data.queries);
    context.fillText(label.text, label.left, label.top + HIGH / 2);
  }
  context.globalAlpha = 1;
}

/** Get the colour of a name: on white darker than the dots, so that it can be read. */
const sideInk = ({ dark, palette }: Over, query: boolean): string => {
  const colour = PAIRS[palette][query ? "query" : "key"];
  return css(dark ? colour : (colour.map((part) => Math.round(part * 0.62)) as unknown as typeof colour));
};

/** Choose the names to draw: marked points, or an even sample; none covers another. */
export function chosen(context: CanvasRenderingContext2D, stage: Stage, over: Over): Label[] {
  const { data, size } = stage;
  if (!data) return [];
  const wishes: Wish[] = [];
  const wish = (at: number) => {
    const { x, y } = stage.where(stage.head, at);
    if (x < 0 || y < 0 || x > size.width || y > size.height) return;
    const text = clipped(data.texts[data.text[at]]);
    wishes.push({ at, x, y, text, width: context.measureText(text).width });
  };
  if (over.picked >= 0) wish(over.picked);
  const { marks } = over;
  if (marks)
    for (let at = 0; at < data.points && wishes.length < 600; at++) if (marks[at] && at !== over.picked) wish(at);
  if (!marks) {
    // A large prime step visits queries and keys evenly.
    const most = Math.min(data.points, 1500);
    for (let turn = 0; turn < most; turn++) wish((turn * 7919) % data.points);
  }
  return placed(wishes, size.width, size.height, marks ? 300 : 90);
}

/** Cut a name to what a label holds, its direction apart from all others. */
export const clipped = (text: string): string => isolated(cut(text, 18));

function ring(
  context: CanvasRenderingContext2D,
  stage: Stage,
  head: number,
  at: number,
  colour: string,
  width: number,
): void {
  const { x, y } = stage.where(head, at);
  context.beginPath();
  const half = stage.patched && stage.isPatch(at) ? stage.thumb * 0.65 + 2 : 0;
  if (half > 0) context.rect(x - half, y - half, 2 * half, 2 * half);
  else context.arc(x, y, 6.5, 0, 2 * Math.PI);
  context.lineWidth = width;
  context.strokeStyle = colour;
  context.stroke();
}
