// What stands in a column: tokens, or tokens merged to words.
import type { TokenInfo } from "../source/wire";
import { dense, fromWhole, type HeadRows } from "./rows";

export interface Unit {
  text: string;
  positions: number[];
  special: boolean;
  generated: boolean;
  segment: number;
}

/** Thin mark for a leading space; kept out of merged words. */
export const SPACE = "\u00b7";

export function unitsOf(tokens: TokenInfo[], words: boolean): Unit[] {
  const out: Unit[] = [];
  let last = -1;
  tokens.forEach((token, position) => {
    const joins = words && token.word >= 0 && token.word === last && !token.special;
    if (joins) {
      const unit = out[out.length - 1];
      unit.text += token.text;
      unit.positions.push(position);
    } else {
      const { text, special, generated, segment } = token;
      out.push({ text, positions: [position], special, generated, segment });
    }
    last = token.special ? -1 : token.word;
  });
  return out;
}

/**
 * Attention between words: summed over the pieces looked at, averaged over the pieces that look,
 * so that a row still sums to what it did. Hidden pieces do not count among those that look.
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
