// Generated from src/attention_atlas/serve/wire.py; do not edit. Write it anew with:
//   python -m attention_atlas.serve.types web/src/source/wire.ts

/** Numbers and their axes, row by row. */
export interface Grid<T> {
  data: T;
  shape: number[];
}

/** What is answered instead, when what was asked for is not to be had. */
export interface Failure {
  error: string;
}

/** One input as a list shows it. */
export interface InputLine {
  number: number;
  label: string;
  kind: string;
  second: boolean;
}

/** One attention layer; `layer` is its number in the model. */
export interface LayerInfo {
  layer: number;
  heads: number;
  groups: number;
  width: number;
  value_width: number;
  has_vectors: boolean;
  queries: string;
  keys: string;
}

/** A run of attention layers. */
export interface TowerInfo {
  name: string;
  role: "self" | "causal" | "cross";
  queries: string;
  keys: string;
  depth: number;
  layers: LayerInfo[];
}

/** `about`: what there is to see. */
export interface About {
  title: string;
  model: string;
  model_class: string;
  kind: "atlas" | "attention";
  receipt_line: string;
  exact: boolean;
  inputs: InputLine[];
  towers: TowerInfo[];
  has_values: boolean;
  notes: string[];
}

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
}

/** One sequence of tokens of an input. */
export interface Stream {
  name: string;
  tokens: TokenInfo[];
}

/** `input/{i}`: one input and its tokens. */
export interface InputInfo {
  number: number;
  text: string;
  second: string | null;
  boundary: number;
  streams: Stream[];
}

/**
 * `edges/{i}/{tower}`: the strongest keys of every row of every head.
 *
 * Rows R run over layer, head, query. With `index` they are the top k, strongest first, weights
 * in 65535ths. Without, the rows are complete: float32 weights in the order of the keys, k = M.
 * Layers with fewer keys than k are padded with weight 0.
 */
export interface Edges {
  input: number;
  tower: string;
  layers: number[];
  heads: number[];
  n: number[];
  m: number[];
  k: number;
  index: Grid<Uint16Array> | Grid<Uint32Array> | null;
  weight: Grid<Uint16Array> | Grid<Float32Array>;
  rest: Grid<Uint16Array>;
  row_sum: Grid<Float32Array> | null;
}

/** `rows/{i}/{head}` or `rows/{i}/{head}/{first}-{last}`: exact weights of one head. */
export interface Rows {
  input: number;
  head: string;
  first: number;
  weights: Grid<Float32Array>;
}

/** `layer/{i}/{tower}/{layer}`: exact weights of all heads of a layer. */
export interface LayerWeights {
  input: number;
  tower: string;
  layer: number;
  weights: Grid<Float32Array>;
}

/**
 * `vectors/{i}/{head}`: what goes into one head's softmax, and the values that it moves.
 *
 * logits = scale · q kᵀ, then cap · tanh(logits / cap) where there is a soft cap, then + added;
 * the softmax runs over the keys seen, and over the sink where there is one.
 */
export interface Vectors {
  input: number;
  head: string;
  scale: number;
  softcap: number | null;
  sink: number | null;
  mask: "full" | "causal" | "given";
  shared: string[];
  query: Grid<Float32Array>;
  key: Grid<Float32Array>;
  value: Grid<Float32Array> | null;
  added: Grid<Float32Array> | null;
  seen: Grid<Uint8Array> | null;
}

export interface TokenPick {
  side: "query" | "key";
  position: number;
}

/** What the person chose. */
export interface Picks {
  input: number;
  other: number | null;
  tower: string;
  heads: string[];
  token: TokenPick | null;
  pinned: boolean;
  layer: number;
  view: "head" | "model" | "neuron" | "heat";
  hidden: Record<string, number[]>;
  filter: "all" | "aa" | "ab" | "ba" | "bb";
  threshold: number;
  topk: number;
  words: boolean;
  theme: "auto" | "light" | "dark";
  sort: boolean;
  valueWeighted: boolean;
  shownLayers: number[] | null;
  shownHeads: number[] | null;
}

/** First word of a path → what answers it. */
export interface Answers {
  about: About;
  input: InputInfo;
  edges: Edges;
  rows: Rows;
  layer: LayerWeights;
  vectors: Vectors;
}

/** How a header names the type of a buffer. */
export const ARRAYS = {
  f4: Float32Array,
  i4: Int32Array,
  u4: Uint32Array,
  u2: Uint16Array,
  u1: Uint8Array,
} as const;
