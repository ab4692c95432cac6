// How does the page say what the server does for it?
import type { QueueLine } from "../source/wire";

const NAMES: Readonly<Record<string, string>> = {
  edit: "your edit",
  add: "your text",
  test_label: "the test of the label",
  heads: "measuring the heads",
  alike: "measuring the heads",
  card: "measuring the heads",
  compare: "comparing the models",
  reaction: "comparing the models",
  overview: "the long input",
  tile: "the long input",
};

/** Get the line to show: what the person asked for comes before what the page fetches by itself. */
export const shownLine = (lines: readonly QueueLine[]): QueueLine | undefined =>
  lines.find(({ what }) => what === "edit" || what === "add" || what === "test_label") ?? lines[0];

export function waitingWords(line: QueueLine): string {
  const name = NAMES[line.what] ?? "your request";
  if (!line.running) return `${name} waits, ${before(line.ahead)}`;
  if (line.total > 0) return `${name}: ${line.done} of ${line.total}`;
  return line.seconds < 1 ? `${name} is running` : `${name} is running, ${Math.round(line.seconds)} s`;
}

export const before = (ahead: number): string => (ahead === 0 ? "next in turn" : `${ahead} before it`);
