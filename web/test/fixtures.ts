// Small heads whose numbers can be worked out by hand.
import type { Tab } from "../src/desk/tab";
import type { TokenInfo } from "../src/source/tokens";
import type { About } from "../src/source/wire";
import { fromWhole, type HeadRows } from "../src/weights/rows";

export const head = (rows: number[][]): HeadRows =>
  fromWhole(Float32Array.from(rows.flat()), rows.length, rows[0].length);

export const rowsOf = (made: HeadRows): number[][] =>
  Array.from({ length: made.n }, (_, row) =>
    [...made.weight.subarray(row * made.k, (row + 1) * made.k)].map((x) => Number(x.toFixed(5))),
  );

export const token = (text: string, more: Partial<TokenInfo> = {}): TokenInfo => ({
  text,
  raw: text,
  id: 0,
  special: false,
  segment: 0,
  word: -1,
  row: -1,
  column: -1,
  generated: false,
  punctuation: false,
  ...more,
});

const layer = (number: number, heads: number) => ({
  layer: number,
  heads,
  groups: heads,
  width: 4,
  value_width: 4,
  has_vectors: true,
  queries: "text",
  keys: "text",
});

export const about = (towers = ["decoder"]): About => ({
  title: "t",
  model: "m",
  model_class: "M",
  kind: "atlas",
  receipt_line: "",
  exact: true,
  has_values: true,
  notes: [],
  maps: [],
  no_maps: "",
  read_only: false,
  can_compute: false,
  no_compute: "",
  estimates: [],
  can_add: false,
  added: [],
  atlases: [],
  can_measure: false,
  pictures: false,
  patches: [],
  thumbs: [],
  story: [],
  no_moved: "",
  output_line: "",
  can_edit: false,
  no_edits: "there is no model to edit",
  predicts: "",
  inputs: [
    { number: 0, label: "a", kind: "text", second: false, tokens: 5 },
    { number: 1, label: "b", kind: "text", second: false, tokens: 5 },
  ],
  towers: towers.map((name) => ({
    name,
    role: "causal",
    queries: "text",
    keys: "text",
    depth: 3,
    layers: [layer(0, 2), layer(2, 3)],
  })),
});

/** A tab that shows nothing. */
export const tab = (name: string, more: Partial<Tab> = {}): Tab => ({
  name,
  title: name,
  about: "",
  panel: () => (() => ({})) as never,
  ...more,
});
