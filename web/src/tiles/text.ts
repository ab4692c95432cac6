// How is the text around a token read, and where is a word found?
import { SPACE } from "../weights/units";

/** What is needed of a token. */
export interface Piece {
  text: string;
  word: number;
  special: boolean;
}

/** The tokens as one running text; token i is text[starts[i]] up to starts[i + 1]. */
export interface Running {
  text: string;
  starts: Uint32Array;
}

/** Join tokens to a text. Tokenizers that do not mark spaces say which tokens make a word. */
export function running(tokens: readonly Piece[]): Running {
  const marked = tokens.some(({ text }) => text.startsWith(SPACE));
  const starts = new Uint32Array(tokens.length + 1);
  const parts: string[] = [];
  let length = 0;
  tokens.forEach(({ text, word, special }, at) => {
    const before = tokens[at - 1];
    const apart = special || before?.special || (!marked && word !== before?.word);
    const own = text.startsWith(SPACE) ? ` ${text.slice(SPACE.length)}` : at > 0 && apart ? ` ${text}` : text;
    starts[at] = length;
    length += own.length;
    parts.push(own);
  });
  starts[tokens.length] = length;
  return { text: parts.join(""), starts };
}

export interface Around {
  before: string;
  here: string;
  after: string;
}

/** Read some tokens within their text, about `letters` in all; what is left out is shown as …. */
export function around({ text, starts }: Running, first: number, last: number, letters: number): Around {
  const [from, to] = [starts[first], starts[last + 1]];
  const here = text.slice(from, to);
  if (here.length >= letters) {
    const half = Math.floor(letters / 2);
    return { before: "", here: `${here.slice(0, half)} … ${here.slice(here.length - half)}`, after: "" };
  }
  const room = letters - here.length;
  // What one side does not need goes to the other.
  const left = Math.min(from, Math.max(Math.floor(room / 2), room - (text.length - to)));
  const right = Math.min(text.length - to, room - left);
  return {
    before: (left < from ? "…" : "") + text.slice(from - left, from),
    here,
    after: text.slice(to, to + right) + (to + right < text.length ? "…" : ""),
  };
}

/** List the tokens that a search finds: the token of a number, or those where the words begin. */
export function found({ text, starts }: Running, wanted: string): number[] {
  const words = wanted.trim().toLocaleLowerCase();
  const count = starts.length - 1;
  if (words === "") return [];
  const position = Number(words.replaceAll(/[,\s]/g, ""));
  if (/^\d[\d,\s]*$/.test(words)) return position < count ? [position] : [];
  const whole = text.toLocaleLowerCase();
  // A letter may become two in lower case (İ), which would shift what follows.
  const places = whole.length === text.length ? whole : text;
  const out: number[] = [];
  let token = 0;
  for (let at = places.indexOf(words); at >= 0; at = places.indexOf(words, at + 1)) {
    while (starts[token + 1] <= at) token++;
    if (out.at(-1) !== token) out.push(token);
  }
  return out;
}

/** Get the next hit after a token, or before it; the list is a ring. */
export function nextOf(hits: readonly number[], from: number, by: 1 | -1): number | undefined {
  if (by > 0) return hits.find((hit) => hit > from) ?? hits[0];
  return hits.findLast((hit) => hit < from) ?? hits.at(-1);
}
