// What is each token of a stream? Columns of a packet, read as one object a token.
import type { InputInfo, Stream } from "./wire";

/** One token of a stream; numbers are -1 where there is none. */
export interface TokenInfo {
  text: string;
  raw: string;
  id: number;
  special: boolean;
  segment: number;
  word: number;
  row: number;
  column: number;
  generated: boolean;
  punctuation: boolean;
}

const read = new WeakMap<Stream, TokenInfo[]>();

/** The tokens of a stream; the same list each time. */
export function tokensIn(stream: Stream): TokenInfo[] {
  let tokens = read.get(stream);
  if (!tokens) read.set(stream, (tokens = tokenList(stream)));
  return tokens;
}

/** The tokens of a stream by its name; none if the input lacks it. */
export function tokensOfStream(input: InputInfo | undefined, name: string | undefined): TokenInfo[] {
  const stream = input?.streams.find((known) => known.name === name);
  return stream ? tokensIn(stream) : [];
}

function tokenList({ tokens }: Stream): TokenInfo[] {
  const { texts, raws, ids, special, punctuation, entry, segment, word, row, column, generated } = tokens;
  return Array.from(entry.data, (at, position) => ({
    text: texts[at],
    raw: raws[at],
    id: ids.data[at],
    special: special.data[at] === 1,
    segment: segment.data[position],
    word: word.data[position],
    row: row ? row.data[position] : -1,
    column: column ? column.data[position] : -1,
    generated: position >= generated,
    punctuation: punctuation.data[at] === 1,
  }));
}
