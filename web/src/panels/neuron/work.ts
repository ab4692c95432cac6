// What does the Neurons view show for one token of one head?
import type { Vectors } from "../../source/wire";
import { rowNorms } from "../../weights/hide";
import { number } from "../../weights/partners";
import { byContribution, trace, type Trace } from "../../weights/neurons";
import { firstOf, type Turned } from "../../weights/directions";
import { fullAt, type Columns } from "./columns";

export interface Work {
  vectors: Vectors;
  row: number;
  /** All rows that are taken together. */
  rows: number[];
  width: number;
  keys: number;
  made: Trace;
  /** q × k element by element (M, D). */
  product: Float32Array;
  /** Weight times length of the value (M). */
  moved: Float32Array | null;
  /** What `moved` is in its place, where it is a share of the layer; "" if it is not. */
  share: string;
  order: Uint32Array;
  /** How many directions are shown instead of neurons; the last column is the rest. */
  directions?: number;
  /** Whether the numbers are differences: after − before. */
  differs: boolean;
  full: { vector: number; product: number; dot: number; value: number; moved: number };
}

export function workOf(
  vectors: Vectors,
  row: number,
  hidden: ReadonlySet<number>,
  sort: boolean,
  key: number | null,
): Work {
  const [keys, width] = vectors.key.shape;
  const made = trace(vectors, row, hidden);
  const product = new Float32Array(keys * width);
  for (let at = 0; at < product.length; at++)
    product[at] = vectors.query.data[row * width + (at % width)] * vectors.key.data[at];
  const norms = vectors.value && rowNorms(vectors.value.data, vectors.value.shape[1]);
  const moved = norms && norms.map((norm, at) => norm * made.weight[at]);
  const order = sort ? byContribution(vectors, row, made, key) : Uint32Array.from({ length: width }, (_, d) => d);
  return withFull({ vectors, row, rows: [row], width, keys, made, product, moved, order, differs: false, share: "" });
}

/** Replace what is moved by shares of the layer (M), which may be below zero. */
export function withMoved(work: Work, moved: Float32Array, share: string): Work {
  return withFull({ ...work, moved, share });
}

/** Add the numbers of full colour. */
function withFull(work: Omit<Work, "full">): Work {
  const { vectors, made, product, moved } = work;
  const seen = made.dot.filter((_, at) => made.seen[at] === 1);
  const full = {
    vector: Math.max(fullAt(vectors.query.data), fullAt(vectors.key.data)),
    product: fullAt(product),
    dot: Math.max(1e-6, ...seen.map(Math.abs)),
    value: vectors.value ? fullAt(vectors.value.data) : 1,
    moved: moved ? Math.max(1e-6, ...moved.map(Math.abs)) : 1,
  };
  return { ...work, full };
}

/**
 * Show a row along the directions of its head: products of the first ones, and all others together as the rest. They
 * add up to q·k less what is the same for all keys, so the softmax is as before.
 */
export function alongDirections(work: Work, { width, a, b }: Turned, count: number): Work {
  const wide = count + 1;
  const product = new Float32Array(work.keys * wide);
  const dot = new Float32Array(work.keys);
  for (let key = 0; key < work.keys; key++) {
    let [sum, shown] = [0, 0];
    for (let d = 0; d < width; d++) {
      const part = a[work.row * width + d] * b[key * width + d];
      sum += part;
      if (d >= count) continue;
      product[key * wide + d] = part;
      shown += part;
    }
    product[key * wide + count] = sum - shown;
    dot[key] = sum;
  }
  const { vectors } = work;
  const grid = (data: Float32Array, of: { shape: number[] }) => ({ ...of, data, shape: [of.shape[0], wide] });
  return withFull({
    ...work,
    vectors: {
      ...vectors,
      query: grid(firstOf(a, width, count), vectors.query),
      key: grid(firstOf(b, width, count), vectors.key),
    },
    width: wide,
    made: { ...work.made, dot },
    product,
    order: Uint32Array.from({ length: wide }, (_, d) => d),
    directions: count,
  });
}

/** Take several rows of one head together: q × k, q · k and the softmax are averaged or summed. */
export function togetherOf(works: readonly Work[], how: "mean" | "sum", last: number): Work {
  if (works.length === 1) return works[0];
  const share = how === "mean" ? 1 / works.length : 1;
  const added = (get: (work: Work) => Float32Array) => {
    const out = new Float32Array(get(works[0]).length);
    for (const work of works) get(work).forEach((value, at) => (out[at] += share * value));
    return out;
  };
  const own = works.find((work) => work.row === last) ?? works[works.length - 1];
  const seen = Uint8Array.from(own.made.seen, (_, at) => Number(works.some((work) => work.made.seen[at] === 1)));
  return withFull({
    ...own,
    rows: works.map((work) => work.row),
    made: { ...own.made, dot: added((work) => work.made.dot), weight: added((work) => work.made.weight), seen },
    product: added((work) => work.product),
    moved: own.moved && added((work) => work.moved ?? new Float32Array(0)),
  });
}

const less = (after: Float32Array, before: Float32Array) => after.map((value, at) => value - before[at]);

/** Compute what changed in every column; both are the same row of one head. */
export function differenceOf(before: Work, after: Work): Work {
  const [was, is] = [before.vectors, after.vectors];
  const grid = (name: "query" | "key") => ({ ...is[name], data: less(is[name].data, was[name].data) });
  const value = is.value && was.value && { ...is.value, data: less(is.value.data, was.value.data) };
  return withFull({
    ...after,
    vectors: { ...is, query: grid("query"), key: grid("key"), value },
    made: {
      ...after.made,
      dot: less(after.made.dot, before.made.dot),
      weight: less(after.made.weight, before.made.weight),
      seen: after.made.seen.map((seen, at) => seen | before.made.seen[at]),
    },
    product: less(after.product, before.product),
    moved: after.moved && before.moved && less(after.moved, before.moved),
    differs: true,
  });
}

/** List the neurons of one cell of a strip. */
export const gathered = (work: Work, { gather }: Columns, place: number): Uint32Array =>
  work.order.subarray(place * gather, (place + 1) * gather);

/** Get the neuron with the largest absolute number; the numbers begin at `start`. */
export function strongest(numbers: Float32Array, start: number, neurons: Uint32Array): number {
  let best = neurons[0];
  for (const neuron of neurons) if (Math.abs(numbers[start + neuron]) > Math.abs(numbers[start + best])) best = neuron;
  return best;
}

/** Write one number of the q·k column as a sentence. */
export function told(work: Work, key: number): string {
  const { made, vectors } = work;
  if (!made.seen[key]) return "not seen: masked or hidden";
  if (work.directions !== undefined && work.rows.length === 1 && !work.differs)
    return `q·(k − mean key) ${number(made.dot[key], true)} → softmax ${made.weight[key].toFixed(4)}`;
  if (work.rows.length > 1)
    return `q·k ${number(made.dot[key], true)}, softmax ${number(made.weight[key])}, of ${work.rows.length} tokens`;
  if (work.differs) return `q·k ${number(made.dot[key], true)}, softmax ${number(made.weight[key], true)}`;
  const scaled = made.dot[key] * vectors.scale;
  const rest = made.logit[key] - scaled;
  const more = Math.abs(rest) > 1e-6 ? ` ${rest < 0 ? "−" : "+"} ${Math.abs(rest).toFixed(3)} (cap, bias)` : "";
  return `q·k ${made.dot[key].toFixed(3)} × scale ${vectors.scale.toPrecision(3)}${more} = ${made.logit[key].toFixed(3)} → softmax ${made.weight[key].toFixed(4)}`;
}
