// What does a canvas show, in words? For people who hear the page instead of seeing it.
import { untrack } from "svelte";
import { isolated } from "../../draw/letters";
import { number } from "../../weights/partners";
import type { Lines } from "../../weights/lines";
import type { Unit } from "../../weights/units";

/** Milliseconds after a change; the picture comes first. */
const LATER = 250;

/**
 * Describe a canvas: it becomes an image with this text. The text is made after the picture, and again when one of
 * `of` changes, which are only read for that.
 */
export function says(words: () => string, ...of: unknown[]): (canvas: Element) => () => void {
  return (canvas) => {
    void of;
    canvas.setAttribute("role", "img");
    if (!canvas.hasAttribute("aria-label")) canvas.setAttribute("aria-label", "picture");
    const timer = setTimeout(() => canvas.setAttribute("aria-label", untrack(words)), LATER);
    return () => clearTimeout(timer);
  };
}

const MOST = 3;

/** Name the strongest lines: which token looks at which, and how much. */
export function strongestLines(lines: Lines, rows: readonly Unit[], columns: readonly Unit[], signed = false): string {
  const top: number[] = [];
  for (let at = 0; at < lines.count; at++) {
    const size = Math.abs(lines.weight[at]);
    if (top.length === MOST && size <= Math.abs(lines.weight[top[MOST - 1]])) continue;
    const place = top.findIndex((other) => Math.abs(lines.weight[other]) < size);
    top.splice(place < 0 ? top.length : place, 0, at);
    top.length = Math.min(top.length, MOST);
  }
  return top
    .map((at) => {
      const [from, to] = [rows[lines.from[at]]?.text ?? "", columns[lines.to[at]]?.text ?? ""];
      return `“${isolated(from)}” at “${isolated(to)}” ${number(lines.weight[at], signed)}`;
    })
    .join(", ");
}
