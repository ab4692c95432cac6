// Which tokens is a word, and which words are near it? Tokenizers mark a space before a token, or its absence.

const SPACE = /^[\u00b7\u2423\u0120\u2581 ]+(?=.)/u;
const JOINED = /^##(?=.)/u;

/** Get the word without the mark of a space before it, or of its absence (##). */
export const bare = (text: string): string => text.replace(SPACE, "").replace(JOINED, "");

/** Write every mark of a space alike, in lower case: Ġhorse, ▁horse and ·horse are the same. */
const alike = (text: string): string => text.replace(SPACE, "·").toLowerCase();

/** Get the test for a word: with a mark only tokens with that mark fit, without one all do. */
export function fitting(word: string, kind: "exact" | "prefix"): (text: string) => boolean {
  const [plain, marked] = [word.toLowerCase(), alike(word)];
  if (kind === "prefix") return (text) => bare(text).toLowerCase().startsWith(plain) || alike(text).startsWith(marked);
  return (text) => bare(text).toLowerCase() === plain || alike(text) === marked;
}

export interface Near {
  text: string;
  /** How many tokens it is. */
  count: number;
}

const MOST = 6;

/** List the words most like one that does not occur: other mark or accent, same start, few changed letters. */
export function nearWords(texts: readonly string[], counts: ArrayLike<number>, word: string, most = MOST): Near[] {
  const wanted = bare(word).toLowerCase();
  const words = new Map<string, Near & { score: number; best: number }>();
  texts.forEach((text, at) => {
    const plain = bare(text);
    const name = plain.toLowerCase();
    const known = words.get(name);
    const score = known?.score ?? unlike(wanted, name);
    if (score === Infinity) return;
    const usual = !known || counts[at] > known.best || (counts[at] === known.best && plain === name);
    const spelled = usual ? { text: plain, best: counts[at] } : known;
    words.set(name, { ...spelled, score, count: (known?.count ?? 0) + counts[at] });
  });
  return [...words.values()]
    .sort((a, b) => a.score - b.score || b.count - a.count || a.text.localeCompare(b.text))
    .slice(0, most)
    .map(({ text, count }) => ({ text, count }));
}

const plainLetters = (text: string): string => text.normalize("NFD").replaceAll(/\p{M}/gu, "");

/** Say how unlike two words are; Infinity if they are no help to each other. */
function unlike(wanted: string, name: string): number {
  if (name === wanted || plainLetters(name) === plainLetters(wanted)) return 0;
  const [short, long] = name.length < wanted.length ? [name, wanted] : [wanted, name];
  const steps = edits(wanted, name, wanted.length <= 3 ? 1 : 2);
  if (steps <= 1) return 1;
  if (short.length >= 2 && long.startsWith(short) && 2 * short.length >= wanted.length) return 1.5;
  return steps;
}

/** Count the letters to change, add, drop or swap with their neighbour; Infinity if more than `most`. */
export function edits(a: string, b: string, most: number): number {
  const [from, to] = [[...a], [...b]];
  if (Math.abs(from.length - to.length) > most) return Infinity;
  let [twoBack, back] = [new Array<number>(), Array.from({ length: to.length + 1 }, (_, at) => at)];
  for (let i = 1; i <= from.length; i++) {
    const row = [i];
    for (let j = 1; j <= to.length; j++) {
      const same = from[i - 1] === to[j - 1];
      row[j] = Math.min(back[j] + 1, row[j - 1] + 1, back[j - 1] + Number(!same));
      if (i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1])
        row[j] = Math.min(row[j], twoBack[j - 2] + 1);
    }
    if (Math.min(...row) > most) return Infinity;
    [twoBack, back] = [back, row];
  }
  return back[to.length] <= most ? back[to.length] : Infinity;
}
