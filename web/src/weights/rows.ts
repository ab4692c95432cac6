// How are the weights of one head stored? As rows of (key, weight) pairs, of the strongest keys or of all.
import { fromRoots } from "../source/roots";
import { UNIT, type Edges } from "../source/wire";

/**
 * N rows of k entries; entry e of row i is at i·k + e. Rows look, columns are looked at. An entry of weight 0 may be
 * padding without a key; differences can have weights below 0.
 */
export interface HeadRows {
  n: number;
  m: number;
  k: number;
  /** Whether each row has all keys in order; `weight` is then the whole matrix (n·m). */
  whole: boolean;
  index: Uint16Array | Uint32Array;
  weight: Float32Array;
  /** Attention of each row that is not in its entries (N). */
  rest: Float32Array;
  /** Attention of each row that went to no key: a sink (N). */
  sink: Float32Array;
}

const orders = new Map<string, Uint32Array>();

/** Get the row or column of each of n·m entries; shared by all complete heads of one size. */
export function inOrder(what: "row" | "column", n: number, m: number): Uint32Array {
  const name = `${what} ${n}×${m}`;
  let order = orders.get(name);
  if (!order) {
    order = new Uint32Array(n * m);
    for (let at = 0; at < order.length; at++) order[at] = what === "row" ? Math.floor(at / m) : at % m;
    if (orders.size > 16) orders.clear();
    orders.set(name, order);
  }
  return order;
}

/** Get the sink of a row: what is missing to a sum of 1, except for rounding. */
function sinkOf(sum: number): number {
  const missing = 1 - sum;
  return missing > 1e-3 && missing < 1 ? missing : 0;
}

const masses = new WeakMap<Float32Array, number>();

/** Get the sum of a head's absolute weights; computed once. */
export function massOf(weights: Float32Array): number {
  let mass = masses.get(weights);
  if (mass === undefined) {
    mass = 0;
    for (let at = 0; at < weights.length; at++) mass += Math.abs(weights[at]);
    masses.set(weights, mass);
  }
  return mass;
}

/** Take whole rows; `shares` are of a layer, so what is missing to a sum of 1 is no sink. */
export function fromWhole(weights: Float32Array, n: number, m: number, shares = false): HeadRows {
  const sums = new Float32Array(n);
  for (let row = 0; row < n && !shares; row++)
    for (let at = row * m; at < (row + 1) * m; at++) sums[row] += weights[at];
  return whole(weights, n, m, shares ? new Float32Array(n) : sums.map(sinkOf));
}

const whole = (weight: Float32Array, n: number, m: number, sink: Float32Array): HeadRows => ({
  n,
  m,
  k: m,
  whole: true,
  index: inOrder("column", n, m),
  weight,
  rest: new Float32Array(n),
  sink,
});

/** Get the first row of a head among all rows, which run over layer, head, query. */
export function firstRow(edges: Edges, place: number, head: number): number {
  let row = 0;
  for (let layer = 0; layer < place; layer++) row += edges.heads[layer] * edges.n[layer];
  return row + head * edges.n[place];
}

/** Read the numbers of some rows; rounded ones are roots in steps of 1, or of the largest of each row. */
function weightsOf({ weight, peak, k }: Edges, first: number, n: number): Float32Array {
  const sent = weight.data.subarray(first * k, (first + n) * k);
  if (sent instanceof Float32Array) return sent;
  return fromRoots(sent, n, peak?.data.subarray(first, first + n));
}

/** Get the first m of k columns. */
function narrowed(weights: Float32Array, n: number, m: number, k: number): Float32Array {
  const out = new Float32Array(n * m);
  for (let row = 0; row < n; row++) out.set(weights.subarray(row * k, row * k + m), row * m);
  return out;
}

/** Read the rows of a head; `place` is the layer's place in the list, not its number in the model. */
export function fromEdges(edges: Edges, place: number, head: number): HeadRows {
  const n = edges.n[place];
  const m = edges.m[place];
  const k = edges.k;
  const first = firstRow(edges, place, head);
  const weight = weightsOf(edges, first, n);
  const sums = edges.row_sum?.data;
  const sink = Float32Array.from({ length: n }, (_, row) => (sums ? sinkOf(sums[first + row]) : 0));
  if (edges.index === null) return whole(k === m ? weight : narrowed(weight, n, m, k), n, m, sink);
  const index = edges.index.data.subarray(first * k, (first + n) * k);
  const left = edges.rest.data.subarray(first, first + n);
  const rest = left instanceof Float32Array ? left : Float32Array.from(left, (share) => share / UNIT);
  return { n, m, k, whole: false, index, weight, rest, sink };
}

/** Get one weight; null if the row has only its strongest keys and this is not one of them. */
export function weightAt(head: HeadRows, row: number, column: number): number | null {
  if (head.whole) return head.weight[row * head.m + column];
  const end = (row + 1) * head.k;
  let listed = false;
  for (let at = row * head.k; at < end; at++) {
    if (head.index[at] !== column) continue;
    if (head.weight[at] !== 0) return head.weight[at];
    listed = true;
  }
  return listed || head.rest[row] === 0 ? 0 : null;
}

/** Get the upper limit of a weight left out of a row: the weakest entry, or all that is left out. */
export function mostLeftOut(head: HeadRows, row: number): number {
  let least = Infinity;
  for (let at = row * head.k; at < (row + 1) * head.k; at++) {
    const size = Math.abs(head.weight[at]);
    if (size > 0 && size < least) least = size;
  }
  return Math.min(least, head.rest[row]);
}

/** Get all weights, row by row (n·m); those left out are 0. */
export function dense(head: HeadRows): Float32Array {
  if (head.whole) return head.weight;
  const out = new Float32Array(head.n * head.m);
  for (let row = 0; row < head.n; row++) {
    for (let at = row * head.k; at < (row + 1) * head.k; at++) {
      if (head.weight[at] !== 0) out[row * head.m + head.index[at]] = head.weight[at];
    }
  }
  return out;
}
