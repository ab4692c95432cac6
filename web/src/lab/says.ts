// What does the model say before and after? The order of the bars, and the largest change in words.
import type { PredictedToken } from "../source/wire";
import { isolated } from "../draw/letters";

/** This many of the likeliest before and after always have bars; others only if they are not fainter than that. */
const [ALWAYS, FAINTEST] = [4, 0.005];

/**
 * Choose the tokens that have bars: the likeliest before or after. They are sorted by their probability before the
 * edits, so that a bar stays where it is while the edits change.
 */
export function inOrder(tokens: readonly PredictedToken[]): PredictedToken[] {
  const first = (when: "before" | "after") => [...tokens].sort((a, b) => b[when] - a[when]).slice(0, ALWAYS);
  const always = [...first("before"), ...first("after")];
  return tokens
    .filter((token) => always.includes(token) || Math.max(token.before, token.after) >= FAINTEST)
    .sort((a, b) => b.before - a.before || b.after - a.after || a.id - b.id);
}

export function percent(share: number): string {
  if (share > 0 && share < 0.0005) return "<0.1 %";
  return `${(100 * share).toFixed(1)} %`;
}

/** Get the token whose probability changes most; undefined if none changes by a tenth of a percent. */
export function mostChanged(tokens: readonly PredictedToken[]): PredictedToken | undefined {
  const change = ({ before, after }: PredictedToken) => Math.abs(after - before);
  const most = [...tokens].sort((a, b) => change(b) - change(a))[0];
  return most && change(most) >= 0.001 ? most : undefined;
}

/** Get the token that is likeliest before or after. */
export const likeliest = (tokens: readonly PredictedToken[], when: "before" | "after"): PredictedToken | undefined =>
  [...tokens].sort((a, b) => b[when] - a[when])[0];

const called = ({ text }: PredictedToken): string => `“${isolated(text.replace(/^·/, ""))}”`;

/** Write the difference in one sentence. */
export function verdict(tokens: readonly PredictedToken[]): string {
  const [was, is, most] = [likeliest(tokens, "before"), likeliest(tokens, "after"), mostChanged(tokens)];
  if (!was || !is) return "";
  if (was.id !== is.id)
    return `The likeliest was ${called(was)} (${percent(was.before)}) and is now ${called(is)} (${percent(is.after)}).`;
  if (!most) return `${called(was)} stays the likeliest; nothing changes by 0.1 % or more.`;
  if (most.id === was.id)
    return `${called(was)} stays the likeliest and changes most: ${percent(was.before)} → ${percent(was.after)}.`;
  return `${called(was)} stays the likeliest. Most changed: ${called(most)}, ${percent(most.before)} → ${percent(most.after)}.`;
}

export interface Piece {
  text: string;
  new: boolean;
}

/** Cut a text after the characters that are the same as in the other text; the rest is `new`. */
export function parted(text: string, same: number): Piece[] {
  const letters = [...text]; // characters as Python counts them
  return [
    { text: letters.slice(0, same).join(""), new: false },
    { text: letters.slice(same).join(""), new: true },
  ].filter((piece) => piece.text !== "");
}
