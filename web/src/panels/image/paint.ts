// How is the Image tab drawn on its canvas? Pictures, overlay, borders, arrows.
import { css, PAPER } from "../../draw/colour";
import { sized } from "../../draw/painter";
import type { Rect } from "../../image/arrange";
import { PALE } from "../../image/heat";
import type { Loaded } from "../../image/picture";
import { spread, tip, type Shapes, type Sign } from "../../image/shapes";

export interface Look {
  width: number;
  height: number;
  dark: boolean;
}

export function paint(
  canvas: HTMLCanvasElement,
  pictures: { loaded: Loaded | undefined; rect: Rect }[],
  shapes: Shapes,
  look: Look,
): void {
  const context = sized(canvas, look.width, look.height);
  for (const { loaded, rect } of pictures) {
    if (!loaded) continue;
    // Pixels of enlarged small pictures stay sharp squares.
    context.imageSmoothingEnabled = loaded.bitmap.width > rect.width / 3;
    context.drawImage(loaded.bitmap, rect.x, rect.y, rect.width, rect.height);
  }
  if (shapes.tiles.length > 0) {
    context.globalCompositeOperation = "saturation";
    context.globalAlpha = PALE;
    context.fillStyle = "#808080";
    for (const { rect } of pictures) context.fillRect(rect.x, rect.y, rect.width, rect.height);
    context.globalCompositeOperation = "source-over";
  }
  context.fillStyle = css(PAPER[look.dark ? "dark" : "light"]);
  context.globalAlpha = 0.72;
  for (const { x, y, width, height } of shapes.unseen) context.fillRect(x, y, width, height);
  for (const { rect, colour, alpha } of shapes.tiles) {
    context.globalAlpha = alpha;
    context.fillStyle = colour;
    context.fillRect(rect.x, rect.y, rect.width, rect.height);
  }
  context.globalAlpha = 1;
  for (const sign of shapes.signs) draw(context, sign);
  for (const { rect, colour, width } of shapes.borders) {
    outline(context, rect, "rgb(0 0 0 / 0.55)", width + 2);
    outline(context, rect, colour, width);
  }
}

function outline(
  context: CanvasRenderingContext2D,
  { x, y, width, height }: Rect,
  colour: string,
  thick: number,
): void {
  context.strokeStyle = colour;
  context.lineWidth = thick;
  context.strokeRect(x, y, width, height);
}

/** Draw in white with a dark rim, which can be seen on any picture. */
function draw(context: CanvasRenderingContext2D, sign: Sign): void {
  context.globalAlpha = sign.alpha;
  context.lineCap = "round";
  for (const [colour, more] of [
    ["rgb(0 0 0 / 0.7)", 1.8],
    ["#fff", 0],
  ] as const) {
    context.strokeStyle = context.fillStyle = colour;
    context.lineWidth = sign.width + more;
    context.beginPath();
    if (sign.kind === "arrow") arrow(context, sign, more);
    else if (sign.kind === "circle") context.arc(...sign.from, spread(sign), 0, 2 * Math.PI);
    else context.rect(sign.from[0] - spread(sign), sign.from[1] - spread(sign), 2 * spread(sign), 2 * spread(sign));
    context.stroke();
  }
  context.globalAlpha = 1;
}

function arrow(context: CanvasRenderingContext2D, sign: Sign, rim: number): void {
  const [end, left, right] = tip(sign);
  context.moveTo(...left);
  context.lineTo(...end);
  context.lineTo(...right);
  context.closePath();
  if (rim === 0) context.fill();
  context.moveTo(...sign.from);
  context.lineTo((left[0] + right[0]) / 2, (left[1] + right[1]) / 2);
}
