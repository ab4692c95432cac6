// What is drawn on the pictures of the Image tab?
import type { Desk } from "../../desk/desk.svelte";
import { other } from "../../desk/image.svelte";
import { patchRect, type Rect } from "../../image/arrange";
import { seenOf } from "../../image/patches";
import { around, border, signs, tiles, whereOn, type Shapes } from "../../image/shapes";
import { PAIRS } from "../../map/colouring";

export function shapesOf(desk: Desk, rects: Rect[]): Shapes {
  const { image, picks } = desk;
  const { covers, token, shades, queries, keys } = image;
  const where = whereOn(covers, rects);
  const pair = PAIRS[picks.palette];
  const out: Shapes = {
    tiles: [],
    borders: [],
    signs: signs(image.marks, queries, keys, where, picks.flows),
    unseen: [],
  };
  covers.forEach(
    (cover, at) => rects[at] && out.unseen.push(...around(patchRect(seenOf(cover.patches), rects[at]), rects[at])),
  );
  if (token && shades && picks.overlay) out.tiles = tiles(image.placesOf(other(token.side)), shades, where);
  const hover = desk.hover && where(image.placesOf(desk.hover.side)[desk.hover.position]);
  if (hover) out.borders.push(border(hover, [255, 255, 255], 1.5));
  for (const position of image.tokens?.positions ?? []) {
    const own = token && where(image.placesOf(token.side)[position]);
    if (own) out.borders.push(border(own, pair[token.side], 3));
  }
  return out;
}
