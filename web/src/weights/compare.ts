// What changes between two inputs? Which tokens correspond, and the difference of their weights.
import { dense, fromWhole, type HeadRows } from "./rows";
import type { Unit } from "./units";

/** Places of the same token in both inputs, or of the token that replaces it. */
export type Pair = readonly [number, number];

/**
 * Align two lists of tokens by their longest common subsequence; between its parts, equally many
 * tokens are paired one by one, so that "she" is paired with "he" in otherwise equal sentences.
 */
export function align(first: readonly string[], second: readonly string[]): Pair[] {
  const a = first.length;
  const b = second.length;
  const longest = Array.from({ length: a + 1 }, () => new Uint32Array(b + 1));
  for (let i = a - 1; i >= 0; i--) {
    for (let j = b - 1; j >= 0; j--) {
      longest[i][j] =
        first[i] === second[j] ? longest[i + 1][j + 1] + 1 : Math.max(longest[i + 1][j], longest[i][j + 1]);
    }
  }
  const same: Pair[] = [];
  for (let i = 0, j = 0; i < a && j < b;) {
    if (first[i] === second[j]) same.push([i++, j++]);
    else if (longest[i + 1][j] >= longest[i][j + 1]) i++;
    else j++;
  }
  return filledIn(same, a, b);
}

function filledIn(same: Pair[], a: number, b: number): Pair[] {
  const out: Pair[] = [];
  let i = 0;
  let j = 0;
  for (const [nextI, nextJ] of [...same, [a, b] as Pair]) {
    if (nextI - i === nextJ - j) for (; i < nextI; i++, j++) out.push([i, j]);
    if (nextI < a) out.push([nextI, nextJ]);
    i = nextI + 1;
    j = nextJ + 1;
  }
  return out;
}

/** Compute second minus first over the aligned tokens. */
export function difference(first: HeadRows, second: HeadRows, rows: Pair[], columns: Pair[]): HeadRows {
  const one = dense(first);
  const two = dense(second);
  const weight = new Float32Array(rows.length * columns.length);
  rows.forEach(([i, otherI], row) =>
    columns.forEach(([j, otherJ], column) => {
      weight[row * columns.length + column] = two[otherI * second.m + otherJ] - one[i * first.m + j];
    }),
  );
  const whole = fromWhole(weight, rows.length, columns.length);
  return { ...whole, sink: new Float32Array(rows.length) };
}

/** List the units of the aligned tokens; a unit has both texts where they differ. */
export function unitsBoth(first: Unit[], second: Unit[], pairs: Pair[]): Unit[] {
  return pairs.map(([i, j]) => {
    const [one, two] = [first[i], second[j]];
    return one.text === two.text ? one : { ...one, text: `${one.text.trim()} → ${two.text.trim()}` };
  });
}
