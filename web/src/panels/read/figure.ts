// How is the Reading view exported?
import type { Desk } from "../../desk/desk.svelte";
import { css, hex, PAPER } from "../../draw/colour";
import { Figure } from "../../draw/svg";
import { colourOf, strengthOf, type Tint, type Word } from "./words";
import { columns } from "../../draw/letters";

const LETTER = 9.2;
const LINE = 30;
const WIDE = 800;

/** Write the texts as lines of words, each on the colour of its attention. */
export function readFigure(desk: Desk, texts: { title: string; words: Word[]; tint: Tint | null }[]): string {
  const placed: { x: number; line: number; word: Word; tint: Tint | null }[] = [];
  const titles: { line: number; title: string }[] = [];
  let line = 0;
  for (const { title, words, tint } of texts) {
    titles.push({ line: line++, title });
    let x = 0;
    for (const word of words) {
      const wide = columns(word.text) * LETTER;
      if (x > 0 && x + wide > WIDE) [x, line] = [0, line + 1];
      else if (word.spaced && x > 0) x += LETTER;
      placed.push({ x, line, word, tint });
      x += wide;
    }
    line += 1;
  }
  const paper = hex(PAPER[desk.dark ? "dark" : "light"]);
  const figure = new Figure(WIDE + 40, (line + 1) * LINE, paper, desk.dark ? "#e6e7ea" : "#1b1d22");
  for (const { line, title } of titles) figure.text(20, (line + 0.75) * LINE, title, { weight: 600 });
  for (const { x, line, word, tint } of placed) {
    const strength = tint ? strengthOf(tint.weights[word.at] ?? 0, tint) : 0;
    const [left, top] = [20 + x, (line + 0.1) * LINE];
    if (tint && strength > 0)
      figure.rect(
        left,
        top,
        columns(word.text) * LETTER,
        LINE * 0.8,
        css(colourOf(tint.weights[word.at] ?? 0, tint)),
        0.75 * strength,
      );
    figure.text(left, (line + 0.7) * LINE, word.text, { mono: true, size: 15 });
  }
  return figure.toString();
}
