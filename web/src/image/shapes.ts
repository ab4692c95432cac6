// Which shapes are drawn on the pictures? The canvas and the exported figure draw the same list.
import { css, type Rgb } from "../draw/colour";
import { patchRect, type Rect } from "./arrange";
import { shade, type Shades } from "./heat";
import type { Mark } from "./marks";
import type { Cover, Patch } from "./patches";

export interface Tile {
  rect: Rect;
  colour: string;
  alpha: number;
}

export interface Border {
  rect: Rect;
  colour: string;
  width: number;
}

export interface Sign {
  kind: Mark["kind"];
  /** Middle of the patch that looks, and of the patch looked at. */
  from: [number, number];
  to: [number, number];
  /** Side of the smaller patch; it sets the size of arrow heads, circles and squares. */
  size: number;
  width: number;
  alpha: number;
}

/** Get a function from a patch to its place on screen; undefined if its picture is not shown. */
export type Where = (patch: Patch | undefined) => Rect | undefined;

export function whereOn(covers: readonly Cover[], rects: readonly Rect[]): Where {
  const own = new Map<Patch, Rect>();
  covers.forEach((cover, at) =>
    cover.patches.forEach((patch) => rects[at] && own.set(patch, patchRect(patch, rects[at]))),
  );
  return (patch) => {
    if (!patch) return undefined;
    const found = own.get(patch);
    if (found) return found;
    // Pooled keys have other patches on the same picture.
    const at = covers.findIndex((cover) => cover.image === patch.image);
    return rects[at] && patchRect(patch, rects[at]);
  };
}

export function tiles(patches: readonly (Patch | undefined)[], shades: Shades, where: Where): Tile[] {
  const out: Tile[] = [];
  patches.forEach((patch, at) => {
    const rect = where(patch);
    if (!rect) return;
    const { colour, alpha } = shade(shades.weights[at], shades);
    out.push({ rect, colour: css(colour), alpha });
  });
  return out;
}

/** The most signs to draw; more cannot be distinguished and take long. */
export const MOST_SIGNS = 6000;

/** List the signs to draw; `byWeight`: width and opacity show the weight, where many cross. */
export function signs(
  marks: readonly Mark[],
  queries: readonly (Patch | undefined)[],
  keys: readonly (Patch | undefined)[],
  where: Where,
  byWeight: boolean,
): Sign[] {
  const out: Sign[] = [];
  for (const mark of marks.slice(-MOST_SIGNS)) {
    const from = where(queries[mark.from]);
    const to = mark.kind === "arrow" ? where(keys[mark.to]) : from;
    if (!from || !to) continue;
    const size = Math.min(from.width, from.height, to.width, to.height);
    const width = byWeight ? 0.7 + Math.min(6, size / 4) * mark.weight : Math.min(2, 0.8 + size / 30);
    out.push({
      kind: mark.kind,
      from: middle(from),
      to: middle(to),
      size,
      width,
      alpha: byWeight ? 0.2 + 0.8 * mark.weight : 0.95,
    });
  }
  return out;
}

const middle = ({ x, y, width, height }: Rect): [number, number] => [x + width / 2, y + height / 2];

/** Get the three points of an arrow head, the tip first. */
export function tip({ from, to, size, width }: Sign): [number, number][] {
  const long = Math.min(3 + 3.2 * width, Math.max(4, size * 0.45));
  const angle = Math.atan2(to[1] - from[1], to[0] - from[0]);
  const end = (turn: number): [number, number] => [
    to[0] - long * Math.cos(angle + turn),
    to[1] - long * Math.sin(angle + turn),
  ];
  return [to, end(0.42), end(-0.42)];
}

/** Get half the side of a square, or the radius of a circle. */
export const spread = ({ size }: Sign): number => Math.max(1.5, Math.min(8, size * 0.2));

export interface Shapes {
  tiles: Tile[];
  borders: Border[];
  signs: Sign[];
  /** Parts of a picture that no patch shows. */
  unseen: Rect[];
}

/** List the rectangles around the seen part of a picture, at most four. */
export function around(seen: Rect, on: Rect): Rect[] {
  const [right, bottom] = [seen.x + seen.width, seen.y + seen.height];
  return [
    { x: on.x, y: on.y, width: on.width, height: seen.y - on.y },
    { x: on.x, y: bottom, width: on.width, height: on.y + on.height - bottom },
    { x: on.x, y: seen.y, width: seen.x - on.x, height: seen.height },
    { x: right, y: seen.y, width: on.x + on.width - right, height: seen.height },
  ].filter(({ width, height }) => width > 0.5 && height > 0.5);
}

export const border = (rect: Rect, colour: Rgb, width: number): Border => ({ rect, colour: css(colour), width });
