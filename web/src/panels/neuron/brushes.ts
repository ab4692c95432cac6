// How does the Neurons view draw? One brush paints the canvas, one writes the exported figure.
import { css } from "../../draw/colour";
import type { Figure } from "../../draw/svg";
import type { Brush } from "./paint";

export function canvasBrush(context: CanvasRenderingContext2D, ink: string): Brush {
  context.font = "10.5px ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace";
  context.textAlign = "right";
  context.textBaseline = "middle";
  context.lineWidth = 1.5;
  return {
    cell(x, y, width, height, colour, alpha = 1) {
      context.globalAlpha = alpha;
      context.fillStyle = colour;
      context.fillRect(x, y, width, height);
    },
    line(x0, y0, x1, y1, colour, alpha) {
      context.globalAlpha = alpha;
      context.strokeStyle = css(colour);
      context.beginPath();
      context.moveTo(x0, y0);
      context.lineTo(x1, y1);
      context.stroke();
    },
    number(x, y, text) {
      context.globalAlpha = 1;
      context.fillStyle = ink;
      context.fillText(text, x, y);
    },
  };
}

export function figureBrush(figure: Figure, x: number, y: number): Brush {
  return {
    cell: (x0, y0, width, height, colour, alpha = 1) => figure.rect(x + x0, y + y0, width, height, colour, alpha),
    line: (x0, y0, x1, y1, colour, alpha) =>
      figure.lines({ colour, alpha, lane: 0, from: new Uint32Array(1), to: new Uint32Array(1) }, () => [
        x + x0,
        y + y0,
        x + x1,
        y + y1,
      ]),
    number: (x0, y0, text) => figure.text(x + x0, y + y0 + 4, text, { mono: true, size: 10.5, anchor: "end" }),
  };
}
