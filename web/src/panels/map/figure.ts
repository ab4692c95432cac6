// How is the map exported? Points as pixels; frames and titles as vector lines and text.
import { css, PAPER } from "../../draw/colour";
import { panelBox } from "../../map/plane";
import { MARKS } from "../../map/verdict";
import type { Partner, TrueNear } from "../../map/partners";
import { gradeInk, lettersOf, lineNames, nearInk, titleLine, trueInk, type Over } from "./overlay";
import type { Stage } from "./stage";
import { Figure } from "../../draw/svg";

export function mapFigure(stage: Stage, points: HTMLCanvasElement, over: Over): string {
  const { data, size, camera } = stage;
  const ink = over.dark ? "#e6e7ea" : "#1b1d22";
  const figure = new Figure(size.width, size.height, css(PAPER[over.dark ? "dark" : "light"]), ink);
  if (!data) return figure.toString();
  figure.picture(points.toDataURL("image/png"), 0, 0, size.width, size.height);
  const letters = lettersOf(stage);
  for (const { head } of stage.cells()) {
    const { x, y, width, height } = panelBox(stage.plane, camera, head);
    figure.frame(x, y, width, height, over.dark ? "#343943" : "#dfe1e6");
    if (letters === 0) continue;
    const line = Math.max(12, titleLine(stage, y, letters));
    figure.text(x, line, data.names[head], { size: letters, weight: 600 });
    const { grade, short } = data.verdicts[head];
    if (width > 62)
      figure.text(x + width, line, MARKS[grade] + short, {
        size: letters,
        anchor: "end",
        fill: gradeInk(grade, over.dark),
      });
  }
  if (stage.head < 0)
    for (const { text, x, y, anchor } of lineNames(stage)) figure.text(x, y + 4, text, { size: 11, anchor });
  if (over.trueNear && stage.head >= 0) marks(figure, stage, over.trueNear, over.dark);
  for (const { from, to } of over.lines) {
    const [a, b] = [stage.where(stage.head, from), stage.where(stage.head, to)];
    figure.line(a.x, a.y, b.x, b.y, "#e0a800");
  }
  return figure.toString();
}

function marks(figure: Figure, stage: Stage, { at, strongest, nearest }: TrueNear, dark: boolean): void {
  const from = stage.where(stage.head, at);
  const drawn = (list: readonly Partner[]) =>
    list.filter((partner) => partner.at >= 0).map((partner) => stage.where(stage.head, partner.at));
  for (const { x, y } of drawn(strongest)) {
    figure.line(from.x, from.y, x, y, trueInk(dark));
    figure.circle(x, y, 8.5, { colour: trueInk(dark), width: 2, alpha: 1 });
  }
  for (const { x, y } of drawn(nearest)) {
    figure.line(from.x, from.y, x, y, nearInk(dark));
    figure.frame(x - 11, y - 11, 22, 22, nearInk(dark), 2);
  }
}
