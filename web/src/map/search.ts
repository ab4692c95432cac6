// How many tokens did a search find, and how close together are their points in each head?

export interface Found {
  tokens: number;
  points: number;
  inputs: number;
}

/** Count the found tokens (query and key are one), points and inputs; `hits` has one byte per point. */
export function countFound(hits: Uint8Array, input: ArrayLike<number>, queries: number): Found {
  const inputs = new Set<number>();
  let [tokens, points] = [0, 0];
  for (let at = 0; at < hits.length; at++) {
    if (!hits[at]) continue;
    points += 1;
    if (at < queries) tokens += 1;
    inputs.add(input[at]);
  }
  return { tokens, points, inputs: inputs.size };
}

export interface Ranked {
  head: number;
  /** Mean distance between hits / mean distance between any points of their side; 1 is chance. */
  spread: number;
}

const SAMPLE = 96;

/** Choose at most `most` items, evenly and the same every time. */
export function some(list: Uint32Array, most = SAMPLE): Uint32Array {
  if (list.length <= most) return list;
  return Uint32Array.from({ length: most }, (_, at) => list[Math.floor(((at + 0.5) * list.length) / most)]);
}

/** The points of one side: found queries and all queries, or found keys and all keys. */
export interface Sides {
  hits: Uint32Array;
  all: Uint32Array;
}

export function sidesOf(marks: Uint8Array, queries: number): Sides[] {
  return [
    [0, queries],
    [queries, marks.length],
  ].map(([from, to]) => {
    const hits: number[] = [];
    for (let at = from; at < to; at++) if (marks[at]) hits.push(at);
    const all = Uint32Array.from({ length: to - from }, (_, at) => from + at);
    return { hits: some(Uint32Array.from(hits)), all: some(all) };
  });
}

interface Places {
  places: Uint16Array;
  points: number;
  dims: number;
  shapes: readonly (readonly number[])[];
}

/** Compute the spread of one head, both sides weighted by their pairs of hits; NaN without two hits on a side. */
export function spreadOf(head: number, data: Places, sides: readonly Sides[]): number {
  let [sum, weight] = [0, 0];
  for (const { hits, all } of sides) {
    if (hits.length < 2) continue;
    const usual = meanDistance(head, data, all);
    if (usual <= 0) continue;
    const pairs = (hits.length * (hits.length - 1)) / 2;
    sum += (pairs * meanDistance(head, data, hits)) / usual;
    weight += pairs;
  }
  return weight > 0 ? sum / weight : NaN;
}

export function meanDistance(head: number, { places, points, dims, shapes }: Places, chosen: Uint32Array): number {
  const shape = shapes[head];
  const coordinates = new Float32Array(chosen.length * 3);
  for (let at = 0; at < chosen.length; at++) {
    const from = (head * points + chosen[at]) * dims;
    for (let axis = 0; axis < dims; axis++) coordinates[at * 3 + axis] = (places[from + axis] / 65535) * shape[axis];
  }
  let sum = 0;
  for (let a = 0; a < coordinates.length; a += 3) {
    for (let b = 0; b < a; b += 3)
      sum += Math.sqrt(
        (coordinates[a] - coordinates[b]) ** 2 +
          (coordinates[a + 1] - coordinates[b + 1]) ** 2 +
          (coordinates[a + 2] - coordinates[b + 2]) ** 2,
      );
  }
  const pairs = (chosen.length * (chosen.length - 1)) / 2;
  return pairs > 0 ? sum / pairs : 0;
}

/** Rank the heads, smallest spread first. */
export function ranking(heads: number, data: Places, sides: readonly Sides[]): Ranked[] {
  const out = Array.from({ length: heads }, (_, head) => ({ head, spread: spreadOf(head, data, sides) }));
  return out.filter(({ spread }) => Number.isFinite(spread)).sort((a, b) => a.spread - b.spread);
}
