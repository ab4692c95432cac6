// The map as a figure: the points as the screen has them, frames and titles as real lines and letters.
import { css, PAPER } from "../../draw/colour";
import { badge, type Over } from "./overlay";
import type { Stage } from "./stage";
import { Figure } from "../../draw/svg";

export function mapFigure(stage: Stage, points: HTMLCanvasElement, over: Over): string {
  const { data, size, camera } = stage;
  const ink = over.dark ? "#e6e7ea" : "#1b1d22";
  const figure = new Figure(size.width, size.height, css(PAPER[over.dark ? "dark" : "light"]), ink);
  if (!data) return figure.toString();
  figure.picture(points.toDataURL("image/png"), 0, 0, size.width, size.height);
  for (const { head, x, y } of stage.cells()) {
    figure.frame(x, y, camera.scale, camera.scale, over.dark ? "#343943" : "#dfe1e6");
    if (camera.scale < 34) continue;
    const letters = Math.min(12, Math.max(8, camera.scale * 0.11));
    figure.text(x, Math.max(12, y - 3), data.names[head], { size: letters, weight: 600 });
    if (camera.scale > 62)
      figure.text(x + camera.scale, Math.max(12, y - 3), badge(data.figure(head, "map.correlation")), {
        size: letters,
        anchor: "end",
      });
  }
  for (const { from, to } of over.lines) {
    const [a, b] = [stage.where(stage.head, from), stage.where(stage.head, to)];
    figure.line(a.x, a.y, b.x, b.y, "#e0a800");
  }
  return figure.toString();
}
