// How are texts of any script measured, cut and kept apart? Chinese is wide, marks take no room, Arabic runs leftwards.

/** Made when it is needed: the browser takes 8 ms for it, a tenth of the time until a saved page is painted. */
let segments: Intl.Segmenter | undefined;

/** Nothing joins and nothing is wide in plain Latin letters, which most tokens are. */
const PLAIN = /^[\u0020-\u02ff]*$/;

/** Split a text into what a reader takes for letters: with their marks, joined emoji as one. */
export function letters(text: string): string[] {
  if (PLAIN.test(text)) return [...text];
  segments ??= new Intl.Segmenter(undefined, { granularity: "grapheme" });
  return Array.from(segments.segment(text), ({ segment }) => segment);
}

/** East Asian letters and emoji are two letters wide in a monospaced font. */
const WIDE =
  /\p{Emoji_Presentation}|\p{Script=Han}|\p{Script=Hiragana}|\p{Script=Katakana}|\p{Script=Hangul}|[\u3000-\u303f\uff01-\uff60]|\ufe0f/u;

/** Count the columns that a text takes in a monospaced font. */
export function columns(text: string): number {
  if (PLAIN.test(text)) return text.length;
  let count = 0;
  for (const letter of letters(text)) count += WIDE.test(letter) ? 2 : 1;
  return count;
}

/** Cut a text to a number of columns, between letters; an ellipsis says so. */
export function clipped(text: string, most: number): string {
  if (columns(text) <= most) return text;
  let [out, room] = ["", most - 1];
  for (const letter of letters(text)) {
    room -= WIDE.test(letter) ? 2 : 1;
    if (room < 0) break;
    out += letter;
  }
  return `${out}…`;
}

const LEFTWARDS = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;

/** Keep a text that runs from right to left apart from the words around it; other texts stay as they are. */
export function isolated(text: string): string {
  return LEFTWARDS.test(text) ? `\u2068${text}\u2069` : text;
}
