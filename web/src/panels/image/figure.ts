// How is the Image tab exported? The picture as pixels; everything on it as shapes and text.
import type { Desk } from "../../desk/desk.svelte";
import { css, hex, mix, NEGATIVE, PAPER, POSITIVE, type Rgb } from "../../draw/colour";
import { Figure } from "../../draw/svg";
import { heatColour, PALE, type Shades } from "../../image/heat";
import { besides } from "../../image/beside";
import { spread, tip, type Sign } from "../../image/shapes";
import { other } from "../../desk/image.svelte";
import { number } from "../../weights/partners";
import { shapesOf } from "./shown";

const WIDE = 760;
const TOP = 34;
const FOOT = 46;
/** More tokens beside the picture than this are not listed. */
const MOST_BESIDE = 24;

export function imageFigure(desk: Desk): string {
  const { image, picks } = desk;
  const covers = image.covers;
  const high = Math.min(
    900,
    Math.max(240, WIDE / Math.max(0.2, Math.min(4, covers[0].aspect)) / Math.ceil(covers.length / 2)),
  );
  const rects = image.arranged(WIDE, high).map((rect) => ({ ...rect, y: rect.y + TOP }));
  const paper = hex(PAPER[desk.dark ? "dark" : "light"]);
  const figure = new Figure(WIDE, TOP + high + FOOT, paper, desk.dark ? "#e6e7ea" : "#1b1d22");
  figure.text(14, 22, titleOf(desk), { weight: 600 });
  const shapes = shapesOf(desk, rects);
  covers.forEach((cover, at) =>
    figure.picture(
      image.pictures[cover.image].address(),
      rects[at].x,
      rects[at].y,
      rects[at].width,
      rects[at].height,
      shapes.tiles.length > 0 ? PALE : 0,
    ),
  );
  for (const { x, y, width, height } of shapes.unseen) figure.rect(x, y, width, height, paper, 0.72);
  for (const { rect, colour, alpha } of shapes.tiles)
    figure.rect(rect.x, rect.y, rect.width, rect.height, colour, alpha);
  for (const sign of shapes.signs) draw(figure, sign);
  for (const { rect, colour, width } of shapes.borders)
    figure.frame(rect.x, rect.y, rect.width, rect.height, colour, width);
  foot(figure, desk, TOP + high + 18);
  if (picks.overlay && image.shades) scale(figure, image.shades, TOP + high + 30);
  return figure.toString();
}

function titleOf(desk: Desk): string {
  const { combine } = desk.picks;
  const { layer } = desk.place;
  if (combine === "mean") return `layer ${layer}, mean over heads`;
  return combine === "rollout" ? `attention rollout to layer ${layer}` : desk.focus;
}

function draw(figure: Figure, sign: Sign): void {
  for (const [colour, more] of [
    ["#000000", 1.8],
    ["#ffffff", 0],
  ] as const) {
    const look = { colour, width: sign.width + more, alpha: sign.alpha * (more ? 0.7 : 1) };
    const r = spread(sign);
    const [x, y] = sign.from;
    if (sign.kind === "circle") figure.circle(x, y, r, look);
    else if (sign.kind === "square")
      figure.path(
        [
          [x - r, y - r],
          [x + r, y - r],
          [x + r, y + r],
          [x - r, y + r],
          [x - r, y - r],
        ],
        look,
      );
    else {
      const [end, left, right] = tip(sign);
      figure.path([sign.from, [(left[0] + right[0]) / 2, (left[1] + right[1]) / 2]], look);
      figure.path([left, end, right, left], { ...look, fill: more === 0 });
    }
  }
}

/** Write the picked token and its weights with tokens that have no place. */
function foot(figure: Figure, desk: Desk, y: number): void {
  const { image } = desk;
  const { token, shades } = image;
  if (!token || !shades) return;
  const far = other(token.side);
  const beside = besides(image.tokensOf(far), (at) => image.isPatch(far, at)).filter((item) => item.token);
  const more =
    beside.length <= MOST_BESIDE
      ? beside.map((item) => `${item.token?.text} ${number(shades.weights[item.position], shades.signed)}`)
      : [];
  figure.text(
    14,
    y,
    [`${image.nameOf(token)} ${token.side === "query" ? "looks at" : "is looked at by"}`, ...more].join("   "),
    { size: 11 },
  );
}

function scale(figure: Figure, { most, signed }: Shades, y: number): void {
  const white: Rgb = [255, 255, 255];
  for (let at = 0; at < 40; at++) {
    const [share, side] = [(at + 0.5) / 40, (at + 0.5) / 20 - 1];
    const colour = signed ? mix(white, side < 0 ? NEGATIVE : POSITIVE, Math.abs(side)) : heatColour(share);
    figure.rect(14 + at * 3, y, 3, 8, css(colour));
  }
  figure.text(14, y + 15, signed ? number(-most) : "0", { size: 9 });
  const words = `${number(most)} (√ scale${signed ? ", after − before" : ""})`;
  figure.text(134, y + 15, words, { size: 9, anchor: "middle" });
}
