// Which commands fit some typed letters? All letters in order; best side by side, then at the start of words.

export interface Fit {
  score: number;
  /** Places of the typed letters in the text. */
  at: number[];
}

/** What fits less than this share of the best is left out. */
const WEAK = 0.4;

const START_OF_WORD = /(^|[\s:.,(/-])$/;

/** Find typed letters in a text, each as early as the ones before allow; null if one is missing. */
export function fit(typed: string, text: string): Fit | null {
  const [letters, low] = [typed.toLowerCase().replace(/\s+/g, ""), text.toLowerCase()];
  if (low.length !== text.length) return low.includes(typed.toLowerCase()) ? { score: 1, at: [] } : null;
  let best: Fit | null = null;
  // Each place of the first letter may begin the best fit.
  for (let first = low.indexOf(letters[0] ?? ""); first >= 0; first = low.indexOf(letters[0] ?? "", first + 1)) {
    const found = from(letters, low, first);
    if (!found) break;
    if (!best || found.score > best.score) best = found;
    if (letters === "") break;
  }
  return best;
}

function from(letters: string, text: string, first: number): Fit | null {
  const at: number[] = [];
  let score = -text.length / 200;
  let place = first - 1;
  for (const letter of letters) {
    const beside = text[place + 1] === letter && at.length > 0;
    const next = beside ? place + 1 : nextPlace(text, letter, place + 1);
    if (next < 0) return null;
    score += beside ? 5 : START_OF_WORD.test(text.slice(0, next)) ? 4 : 0.2;
    at.push(next);
    place = next;
  }
  return { score, at };
}

/** Get the next place of a letter, at the start of a word if there is one. */
function nextPlace(text: string, letter: string, from: number): number {
  for (let at = text.indexOf(letter, from); at >= 0; at = text.indexOf(letter, at + 1))
    if (START_OF_WORD.test(text.slice(0, at))) return at;
  return text.indexOf(letter, from);
}

/** Sort things by how well they fit, the best first; without letters all of them in their order. */
export function ranked<T>(typed: string, things: readonly T[], text: (thing: T) => string, most: number): T[] {
  if (typed.trim() === "") return things.slice(0, most);
  const fits = things
    .map((thing, order) => ({ thing, order, score: fit(typed, text(thing))?.score ?? -Infinity }))
    .sort((a, b) => b.score - a.score || a.order - b.order);
  const least = WEAK * Math.max(0, fits[0]?.score ?? 0);
  return fits
    .filter(({ score }) => score > -Infinity && score >= least)
    .slice(0, most)
    .map(({ thing }) => thing);
}
