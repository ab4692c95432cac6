// What does the Neurons view say about the cell under the cursor?
import type { Neuron } from "../../lab/offers";
import type { Unit } from "../../weights/units";
import type { Columns } from "./columns";
import { gathered, strongest, told, type Work } from "./work";

interface Tokens {
  rowUnits: Unit[];
  columnUnits: Unit[];
}

/** Get the neuron at column x of line `at`, and whose it is; null where there is none. */
export function neuronAt(work: Work, columns: Columns, x: number, at: number): Neuron | null {
  if (work.directions !== undefined) return null;
  const strip = (start: number, side: Neuron["side"], numbers: Float32Array): Neuron | null => {
    if (x < start || x >= start + columns.strip) return null;
    const neurons = gathered(work, columns, Math.floor((x - start) / columns.cell));
    return { side, index: strongest(numbers, at * work.width, neurons), position: at };
  };
  const query = at < work.vectors.query.shape[0] ? strip(columns.query, "query", work.vectors.query.data) : null;
  if (query || at >= work.keys) return query;
  return strip(columns.key, "key", work.vectors.key.data) ?? strip(columns.product, "key", work.product);
}

/** Write a sentence about column x of line `at`; null where there is nothing. */
export function wordsAt(work: Work, columns: Columns, { rowUnits, columnUnits }: Tokens, x: number, at: number) {
  const { vectors, width, row } = work;
  const { query, key } = vectors;
  /** Get the neuron at x in a strip that begins at `start`, and its name. */
  const neuronIn = (start: number, numbers: Float32Array) => {
    if (x < start || x >= start + columns.strip) return null;
    const neurons = gathered(work, columns, Math.floor((x - start) / columns.cell));
    const d = strongest(numbers, at * width, neurons);
    if (work.directions !== undefined)
      return { d, name: d === work.directions ? "all other directions" : `direction ${d + 1}` };
    return { d, name: neurons.length > 1 ? `neuron ${d}, strongest of ${[...neurons].join(", ")}` : `neuron ${d}` };
  };
  const number = (values: Float32Array, line: number, d: number) => values[line * width + d].toFixed(3);
  const inQuery = at < query.shape[0] ? neuronIn(columns.query, query.data) : null;
  const isRest = (d: number) => d === work.directions;
  if (inQuery && isRest(inQuery.d)) return null;
  if (inQuery) return `${inQuery.name} · q of ${rowUnits[at].text}: ${number(query.data, at, inQuery.d)}`;
  if (at >= work.keys) return null;
  const inKey = neuronIn(columns.key, key.data);
  if (inKey && isRest(inKey.d)) return null;
  if (inKey) return `${inKey.name} · k of ${columnUnits[at].text}: ${number(key.data, at, inKey.d)}`;
  const both = neuronIn(columns.product, work.product);
  if (both && (isRest(both.d) || work.differs || work.rows.length > 1))
    return `${both.name} · q × k: ${number(work.product, at, both.d)}`;
  if (both) {
    const factors = `q ${number(query.data, row, both.d)} × k ${number(key.data, at, both.d)}`;
    return `${both.name} · ${factors} = ${number(work.product, at, both.d)}`;
  }
  if (x >= columns.dot && x < columns.soft + columns.bar)
    return `${rowUnits[row].text} → ${columnUnits[at].text}: ${told(work, at)}`;
  if (columns.moved !== null && x >= columns.moved && work.moved && work.share)
    return `${work.share}: ${work.moved[at].toFixed(3)} of an even head's part of the layer`;
  if (columns.moved !== null && x >= columns.moved && work.moved && (work.differs || work.rows.length > 1))
    return `weight × length of the value: ${work.moved[at].toFixed(3)}`;
  if (columns.moved !== null && x >= columns.moved && work.moved)
    return `softmax ${work.made.weight[at].toFixed(4)} × length of the value = ${work.moved[at].toFixed(3)}`;
  return null;
}
