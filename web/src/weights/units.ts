// What does a column list? Tokens, or tokens merged into words.
import type { TokenInfo } from "../source/tokens";
import { dense, fromWhole, type HeadRows } from "./rows";

export interface Unit {
  text: string;
  positions: number[];
  special: boolean;
  generated: boolean;
  segment: number;
}

/** The mark of a leading space; merged words do not have it. */
export const SPACE = "\u00b7";

/** Write the bytes of cut letters that a word brings together again as the letters that they are. */
function whole(text: string): string {
  return text.replace(/(?:⟨(?:[0-9A-F]{2})+⟩){2,}/g, (pieces) => {
    const bytes = pieces.match(/[0-9A-F]{2}/g)?.map((pair) => Number.parseInt(pair, 16)) ?? [];
    try {
      return new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(bytes));
    } catch {
      return pieces; // a letter that the word does not hold whole
    }
  });
}

/** Get the units of tokens; `first` is the position of the first token in its input. */
export function unitsOf(tokens: TokenInfo[], words: boolean, first = 0): Unit[] {
  const out: Unit[] = [];
  let last = -1;
  tokens.forEach((token, at) => {
    const position = first + at;
    const joins = words && token.word >= 0 && token.word === last && !token.special;
    if (joins) {
      const unit = out[out.length - 1];
      unit.text = whole(unit.text + token.text);
      unit.positions.push(position);
    } else {
      const { text, special, generated, segment } = token;
      out.push({ text, positions: [position], special, generated, segment });
    }
    last = token.special ? -1 : token.word;
  });
  return out;
}

/** Count the positions of units from another token on. */
export function unitsFrom(units: Unit[], first: number): Unit[] {
  if (first === 0) return units;
  return units.map((unit) => ({ ...unit, positions: unit.positions.map((position) => position - first) }));
}

/**
 * Merge rows of tokens into rows of words: summed over the tokens looked at, averaged over the tokens
 * that look, so that the sum of a row stays. Hidden tokens are left out of the average.
 */
export function mergeWords(head: HeadRows, rows: Unit[], columns: Unit[], hidden: ReadonlySet<number>): HeadRows {
  const all = dense(head);
  const owner = new Int32Array(head.m).fill(-1);
  columns.forEach((unit, at) => unit.positions.forEach((position) => (owner[position] = at)));
  const m = columns.length;
  const weight = new Float32Array(rows.length * m);
  const rest = new Float32Array(rows.length);
  const sink = new Float32Array(rows.length);
  rows.forEach((unit, row) => {
    const looking = unit.positions.filter((position) => !hidden.has(position));
    for (const position of looking) {
      for (let key = 0; key < head.m; key++) {
        if (owner[key] >= 0) weight[row * m + owner[key]] += all[position * head.m + key] / looking.length;
      }
      rest[row] += head.rest[position] / looking.length;
      sink[row] += head.sink[position] / looking.length;
    }
  });
  return { ...fromWhole(weight, rows.length, m), rest, sink };
}
