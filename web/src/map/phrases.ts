// Where do several words stand in sequence? Tokens of one input are put together again and compared.
import type { Searched } from "./fields";

/** The points of each side by input and position, so that a point's next token is the next of the list. */
const orders = new WeakMap<Searched["text"], Uint32Array>();

function orderOf(data: Searched): Uint32Array {
  let order = orders.get(data.text);
  if (!order) {
    order = Uint32Array.from({ length: data.points }, (_, at) => at).sort(
      (a, b) =>
        Number(a >= data.queries) - Number(b >= data.queries) ||
        data.input[a] - data.input[b] ||
        data.position[a] - data.position[b],
    );
    orders.set(data.text, order);
  }
  return order;
}

/** Get the letters of each text as they stand in a sentence: a mark of a space becomes a space. */
function letters(texts: readonly string[]): string[] {
  const pieces = texts.some((text) => /^##./u.test(text));
  return texts.map((text) => {
    const plain = text.toLowerCase();
    if (pieces) return plain.startsWith("##") && plain.length > 2 ? plain.slice(2) : ` ${plain}`;
    return plain.replace(/^[\u00b7\u2423\u0120\u2581]+/u, " ");
  });
}

/** Mark every token of every occurrence of a phrase: one byte per point. */
export function phraseHits(data: Searched, phrase: string): Uint8Array {
  const hits = new Uint8Array(data.points);
  const wanted = phrase.toLowerCase().trim().replaceAll(/\s+/g, " ");
  if (wanted === "") return hits;
  const written = letters(data.texts);
  const starts = written.map((text) => wanted.startsWith(text.trimStart()) && text.trim() !== "");
  const order = orderOf(data);
  const follows = (a: number, b: number) =>
    a < data.queries === b < data.queries &&
    data.input[a] === data.input[b] &&
    data.position[a] + 1 === data.position[b];
  for (let first = 0; first < order.length; first++) {
    if (!starts[data.text[order[first]]]) continue;
    let text = written[data.text[order[first]]].trimStart();
    let last = first;
    while (text.length < wanted.length && wanted.startsWith(text)) {
      if (last + 1 >= order.length || !follows(order[last], order[last + 1])) break;
      last++;
      text += written[data.text[order[last]]];
    }
    if (text === wanted) for (let at = first; at <= last; at++) hits[order[at]] = 1;
  }
  return hits;
}
