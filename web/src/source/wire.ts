// Generated from src/attention_atlas/page/wire/ and its tables; do not edit. Write it again with:
//   python -m attention_atlas.page.hosts.typescript web/src/source/wire.ts

/** Numbers and their axes, row by row. */
export interface Grid<T> {
  data: T;
  shape: number[];
}

/** The answer when a request cannot be answered. */
export interface Failure {
  error: string;
}

/** One input as a list shows it. */
export interface InputLine {
  number: number;
  label: string;
  kind: string;
  second: boolean;
  tokens: number;
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

/** Heads of a map that share their tokens, usually a tower. */
export interface MapGroup {
  name: string;
  heads: string[];
  queries: number;
  keys: number;
}

/** One map of the atlas. */
export interface MapInfo {
  name: string;
  method: string;
  dims: number;
  groups: MapGroup[];
  options: Record<string, string>;
}

/** A map that can be computed, and about how long that takes on this machine. */
export interface Estimate {
  method: string;
  dims: number;
  seconds: number;
}

/** Another atlas of the same server; it can be compared with this one. */
export interface Neighbour {
  address: string;
  title: string;
  inputs: number;
}

/** One step of a story through the page. */
export interface StoryStep {
  title: string;
  text: string;
  picks: string;
}

/** One size of the sheet with all pictures, `thumbs/{level}`. */
export interface ThumbSheet {
  side: number;
  width: number;
  height: number;
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
  maps: MapInfo[];
  no_maps: string;
  read_only: boolean;
  can_compute: boolean;
  no_compute: string;
  estimates: Estimate[];
  can_add: boolean;
  added: number[];
  can_edit: boolean;
  no_edits: string;
  predicts: "next" | "masked" | "label" | "";
  atlases: Neighbour[];
  can_measure: boolean;
  pictures: boolean;
  patches: string[];
  no_moved: string;
  output_line: string;
  story: StoryStep[];
  thumbs: ThumbSheet[];
}

/**
 * `progress`: the running computation, or how the last one ended.
 *
 * waiting: computations of other atlases come first, `ahead` of them.
 */
export interface MapProgress {
  state: "idle" | "waiting" | "running" | "done" | "stopped" | "failed";
  map: string;
  done: number;
  total: number;
  seconds_left: number | null;
  error: string;
  head: string;
  ahead: number;
}

/** One piece of work of a page. */
export interface QueueLine {
  ticket: number;
  what: string;
  running: boolean;
  ahead: number;
  done: number;
  total: number;
  seconds: number;
}

/** `queue/{page}`: the work of a page that waits or runs on the server. */
export interface Queued {
  lines: QueueLine[];
}

/** One check of the edit receipt; `holds` is None if it cannot be made in this model. */
export interface EditProof {
  name: string;
  sentence: string;
  holds: boolean | null;
}

/**
 * `edit_receipt`: whether edits of the live model are those that were asked for.
 *
 * The checks run in the background once; ask again until `done`.
 */
export interface EditProofs {
  line: string;
  holds: boolean;
  parts: EditProof[];
  done: boolean;
}

/**
 * The tokens of a stream as columns; numbers are -1 where there is none.
 *
 * Equal tokens are listed once (V of them); `entry` says which of these each of N tokens is.
 */
export interface TokenColumns {
  texts: string[];
  raws: string[];
  ids: Grid<Int32Array>;
  special: Grid<Uint8Array>;
  punctuation: Grid<Uint8Array>;
  entry: Grid<Uint16Array> | Grid<Uint32Array>;
  segment: Grid<Int16Array>;
  word: Grid<Int32Array>;
  row: Grid<Int32Array> | null;
  column: Grid<Int32Array> | null;
  generated: number;
}

/**
 * One sequence of tokens of an input.
 *
 * Boxes are left, top, right, bottom as fractions of the original picture. They may reach a
 * little beyond it; they are NaN for tokens that show no part of it: words, class and register
 * tokens, patches of padding.
 */
export interface Stream {
  name: string;
  tokens: TokenColumns;
  image: Grid<Int16Array> | null;
  box: Grid<Float32Array> | null;
}

/** One picture of an input, turned upright: its original size and its file name. */
export interface PictureInfo {
  width: number;
  height: number;
  name: string;
}

/** `input/{i}`: one input and its tokens. */
export interface InputInfo {
  number: number;
  text: string;
  second: string | null;
  boundary: number;
  streams: Stream[];
  pictures: PictureInfo[];
}

/**
 * `edges/{i}/{tower}`: the strongest keys of every row of every head.
 * `edges/{i}/{tower}/{layer}`: the same for one layer, which is sent sooner.
 * `edges/{i}/{tower}/{layer}/{rows}/{columns}`: of a window, as in edges/0/decoder/3/0-511/0-511.
 *
 * Rows R run over layer, head, query. With `index` each row has its top k keys, strongest first;
 * without, all keys in order, k = M. Numbers are exact float32, or rounded: weights are
 * (value / 65535)², what is moved is (value / 65535)² · peak of its row, and contributions, which
 * have signs, are ± (value / 32767)² · peak of their row. Layers with fewer keys than k are padded
 * with 0. In a window n and m count its rows and columns, `index` starts with its first column,
 * and `rest` of weights is all weight outside of it too.
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
  weight: Grid<Uint16Array> | Grid<Int16Array> | Grid<Float32Array>;
  rest: Grid<Uint16Array> | Grid<Float32Array>;
  row_sum: Grid<Float32Array> | null;
  first_row: number;
  first_column: number;
  of: "weights" | "moved" | "contribution";
  peak: Grid<Float32Array> | null;
}

/** `rows/{i}/{head}` or `rows/{i}/{head}/{first}-{last}`: exact weights of one head. */
export interface RowWeights {
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
 * logits = scale · q kᵀ, then cap · tanh(logits / cap) if there is a soft cap, then + added;
 * the softmax runs over the keys seen, and over the sink if there is one.
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

/** Tokens at one end of a direction, strongest first, with their mean coordinates. */
export interface DirectionEnd {
  side: "query" | "key";
  sign: number;
  tokens: string[];
  values: number[];
}

/** Both ends of one direction, of queries and of keys. */
export interface DirectionEnds {
  ends: DirectionEnd[];
}

/**
 * `directions/{head}`: the directions that carry a head's attention, most telling first.
 *
 * a = q · query, b = (k − mean_key) · key; q·k = Σ a b + q·mean_key.
 */
export interface HeadDirections {
  head: string;
  count: number;
  query: Grid<Float32Array>;
  key: Grid<Float32Array>;
  mean_key: Grid<Float32Array>;
  share: Grid<Float32Array>;
  kept: Grid<Float32Array>;
  telling: DirectionEnds[];
}

/** A key that is looked at far more than others, whatever is asked. */
export interface Sink {
  position: number;
  text: string;
  kind: string;
  layers: number[];
  share: number;
}

/** `sinks/{i}/{tower}`: the sinks of an input. */
export interface Sinks {
  input: number;
  tower: string;
  stream: string;
  sinks: Sink[];
}

/**
 * `logit/{i}/{position}/{token}/{against?}`: what heads and tokens add to a logit.
 *
 * token is a number in the vocabulary or of a class, or `next`; position may be `last`. With
 * `against` it is the difference of two logits. The scale of the final norm is held.
 */
export interface LogitAdds {
  input: number;
  position: number;
  token: number;
  text: string;
  against: number | null;
  against_text: string;
  queries: string;
  classes: string[] | null;
  heads: string[];
  keys: string[];
  adds: Grid<Float32Array>;
  missing: string[];
}

/**
 * Some cells of one level; a cell's strongest weight is (value / 65535)² · peak.
 *
 * Of contributions, which have signs, it is the one farthest from zero: ± (value / 32767)² · peak.
 * Its mass, the sum of its weights (or of their sizes), is (value / 65535)² · most. Cells beyond
 * the input are left out, so R and C are 256 or less.
 */
export interface TileCells {
  strongest: Grid<Uint16Array> | Grid<Int16Array>;
  mass: Grid<Uint16Array>;
  peak: number;
  most: number;
}

/** `tile/{i}/{head}/{level}/{row}/{column}` or `…/{column}/{without}`: one tile, exact. */
export interface TilePacket {
  input: number;
  head: string;
  level: number;
  row: number;
  column: number;
  cells: TileCells;
  without: number[];
}

/**
 * `overview/{i}/{head}/{sampled}` or `…/{sampled}/{without}`: a whole head in one tile.
 *
 * sampled 1: from every `step`-th row, at once; masses are scaled up and the strongest weight of
 * a cell may be missed. sampled 0: from all rows, exact.
 */
export interface OverviewPacket {
  input: number;
  head: string;
  n: number;
  m: number;
  level: number;
  step: number;
  cells: TileCells;
  column_mass: Grid<Float32Array>;
  total: number;
  sinks: number[];
  without: number[];
  kept: Grid<Float32Array>;
  drawn: Grid<Float32Array>;
}

/** `picture/{i}/{image}`: one picture, turned upright, on white, at most 1024 pixels a side. */
export interface Picture {
  input: number;
  image: number;
  mime: string;
  width: number;
  height: number;
  data: Grid<Uint8Array>;
}

/**
 * `gaze/{i}/{tower}/{layer}/{how}`: where one head, or all heads of a layer together, look.
 *
 * how is the number of a head, `mean` over the heads, or `rollout`: from this layer back to the
 * first (Abnar & Zuidema 2020). The strongest key of each patch gets a mark where its weight is at
 * least 0.05: 1 an arrow, 2 a circle (itself), 3 a square (a class or register token); 0 none.
 */
export interface Gaze {
  input: number;
  tower: string;
  layer: number;
  how: string;
  weights: Grid<Uint16Array> | Grid<Float32Array>;
  strongest: Grid<Uint32Array>;
  mark: Grid<Uint8Array>;
}

/** `thumbs/{level}`: all pictures of the atlas on one sheet, at most 4096 pixels a side. */
export interface Thumbs {
  level: number;
  mime: string;
  width: number;
  height: number;
  data: Grid<Uint8Array>;
  input: Grid<Uint32Array>;
  image: Grid<Uint16Array>;
  cell: Grid<Uint16Array>;
}

/** `map/{name}/{group}`: places of the queries, then of the keys, of every head. */
export interface MapPlaces {
  map: string;
  group: string;
  heads: string[];
  queries: number;
  places: Grid<Uint16Array>;
  box: Grid<Float32Array>;
  c: Grid<Float32Array>;
  figures: string[];
  fidelity: Grid<Float32Array>;
}

/** One number per point: low + value / 65534 · (high − low); 65535 means none. */
export interface NumberColumn {
  name: string;
  label: string;
  kind: "number";
  scale: "linear" | "log";
  whole: boolean;
  low: number;
  high: number;
  values: Grid<Uint16Array>;
}

/** One name per point, as an index in `names`; the largest number of the type means none. */
export interface NameColumn {
  name: string;
  label: string;
  kind: "name";
  names: string[];
  values: Grid<Uint8Array> | Grid<Uint16Array>;
}

/** `points/{name}/{group}`: what each point is, for all heads, and what can colour it. */
export interface MapPoints {
  map: string;
  group: string;
  queries: number;
  token: Grid<Uint32Array>;
  input: Grid<Uint16Array> | Grid<Uint32Array>;
  position: Grid<Uint16Array> | Grid<Uint32Array>;
  texts: string[];
  text: Grid<Uint16Array> | Grid<Uint32Array>;
  special: Grid<Uint8Array>;
  columns: (NumberColumn | NameColumn)[];
  image: Grid<Int16Array> | null;
  box: Grid<Float32Array> | null;
}

/**
 * `norms/{name}/{group}`: lengths of the vectors, as captured.
 *
 * Of a query: low[head, 0] + value / 255 · (high[head, 0] − low[head, 0]); of a key: the same with
 * index 1. For the map they are scaled: queries times c, keys divided by c.
 */
export interface MapNorms {
  map: string;
  group: string;
  queries: number;
  values: Grid<Uint8Array>;
  low: Grid<Float32Array>;
  high: Grid<Float32Array>;
}

/**
 * `along/{map}/{head}/{direction}`: where the points of a map lie along a direction of a head.
 *
 * Queries first, as on the map: a of a query, b of a key.
 */
export interface DirectionColumn {
  map: string;
  head: string;
  direction: number;
  column: NumberColumn;
}

/** `extra/{name}/{group}/{input}`: an added input on a map; the other points stay in place. */
export interface MapExtra {
  places: Grid<Float32Array>;
  points: MapPoints;
  norms: MapNorms;
}

/**
 * `partners/{input}/{head}/{side}/{position}`: what one token attends to, or what to it.
 *
 * Of a query there is a number for each key, of a key for each query, in the order of positions.
 */
export interface Partners {
  weights: Grid<Float32Array>;
  seen: Grid<Uint8Array>;
}

/** `all/{name}/{head}`: how many tokens a head has, and whether all are placed on a map. */
export interface AllInfo {
  queries: number;
  keys: number;
  placed: boolean;
  can_place: boolean;
  seconds: number;
  streams: string[];
}

/** `all_places/{name}/{head}`: places of all queries of a head, then of all its keys. */
export interface AllPoints {
  queries: number;
  places: Grid<Uint16Array>;
  box: Grid<Float32Array>;
}

/** `all_tokens/{stream}`: the tokens of a stream; input i has starts[i] to starts[i + 1]. */
export interface AllTokens {
  starts: Grid<Uint32Array>;
  texts: string[];
  text: Grid<Uint16Array> | Grid<Uint32Array>;
}

/**
 * `all_column/{name}/{group}/{column}`: a column of all queries, then of all keys.
 *
 * Where both are of one stream its tokens are sent once. Ranges and names are those of the map's
 * column, so that one legend is right for both.
 */
export interface AllColumn {
  column: NumberColumn | NameColumn;
}

/**
 * `mean/{head}`: the mean weights over all inputs by position; rows are scaled to sum to one.
 *
 * `mean/{head}/{how}/{without}`: the mean of what is moved or of contributions, without sinks.
 *
 * Row i is the mean over the inputs that reach position i; only the first positions are sent.
 */
export interface MeanPattern {
  head: string;
  inputs: number;
  longest: number;
  reached: Grid<Uint32Array>;
  weights: Grid<Uint16Array> | Grid<Float32Array>;
}

/** A measure: its name, title, formula and source. */
export interface MeasureInfo {
  name: string;
  title: string;
  formula: string;
  source: string;
  chance: string;
  range: string;
}

/**
 * `heads`: the kind and every score of every head; NaN where there is none.
 *
 * `heads_without_sinks`: the same of weights without the sinks of each input.
 */
export interface HeadScores {
  heads: string[];
  kinds: string[];
  kind: Grid<Uint8Array>;
  margin: Grid<Float32Array>;
  agree: Grid<Float32Array>;
  details: string[];
  measures: MeasureInfo[];
  value: Grid<Float32Array>;
  low: Grid<Float32Array>;
  high: Grid<Float32Array>;
  chance: Grid<Float32Array>;
  n: Grid<Uint32Array>;
  odd: Grid<Float32Array>;
  found: string[];
  note: string;
}

/** `alike`: a map of heads by what they do; similar heads are near each other. */
export interface AlikeHeads {
  heads: string[];
  places: Grid<Float32Array>;
  cluster: Grid<Uint16Array>;
}

/** A similar head. */
export interface NearHead {
  head: string;
  divergence: number;
}

/** A relation of the given trees that a head follows better than a fixed offset does. */
export interface Followed {
  relation: string;
  way: "up" | "down";
  right: number;
  baseline: number;
  words: number;
}

/**
 * `card/{head}`: what is known of one head besides its row of `heads`.
 *
 * `card_without_sinks/{head}`: the same of weights without the sinks of each input.
 */
export interface HeadCard {
  head: string;
  evidence: Record<string, number>;
  counts: Record<string, number>;
  sink: number;
  with_sink: string;
  without_sink: string | null;
  found: string[];
  nearest: NearHead[];
  telling: number[];
  relations: Followed[];
}

/** One model of a comparison, on the inputs that all of them read. */
export interface Compared {
  name: string;
  way: string;
  heads: string[];
  kind: Grid<Uint8Array>;
  importance: Grid<Float32Array>;
  chosen: Grid<Float32Array>;
  statistics: Record<string, number>;
  statistics_chosen: Record<string, number>;
  counts: Record<string, number>;
  matched: string[];
}

/** Distances of the first model's heads to those of another, in bits; 0 means equal. */
export interface Counterparts {
  nearest: Grid<Uint16Array>;
  away: Grid<Float32Array>;
  same: Grid<Float32Array> | null;
}

/**
 * `compare/{k,…}`: this model and those of the atlases k of `about` on shared inputs.
 *
 * `compare_without_sinks/{k,…}`: the same, scores and kinds without the sinks of each input.
 */
export interface ComparedModels {
  models: Compared[];
  counterparts: Counterparts[];
  kinds: string[];
  inputs: Grid<Uint32Array>;
  labels: string[];
  places: Grid<Float32Array>;
  note: string;
  line_heads: string[];
  line_measures: string[];
  line_titles: string[];
  lines: Grid<Float32Array>;
  no_lines: string;
}

/** What every head of one model did with an input, as small pictures. */
export interface Reacted {
  tokens: number;
  importance: Grid<Float32Array>;
  cells: Grid<Uint8Array>;
}

/** `reaction/{k,…}/{place}`: the models of a comparison on one of their shared inputs. */
export interface Reaction {
  models: Reacted[];
}

/** `compute`: lay out all heads in the background; `progress` says how far it is. */
export interface Compute {
  method: string;
  dims: number;
}

/** `place`: place all tokens of a head on a map in the background; `progress` counts tokens. */
export interface Place {
  map: string;
  head: string;
}

/** `cancel`: stop the running computation; finished heads are kept for the next run. */
export interface Cancel {}

/** `add`: let the live model read a new text. */
export interface Add {
  text: string;
  second: string | null;
}

/** The new input i; ask for `about`, input/{i}, edges/{i}/… and extra/{name}/{group}/{i}. */
export interface Added {
  input: number;
  seconds: number;
}

/** `edit`: let the live model read an input plainly and with edits. */
export interface EditInput {
  input: number;
  edits: Record<string, unknown>[];
  at: number | null;
  generate: number;
}

/** What one edit does, and which heads it touches. */
export interface EditDone {
  sentence: string;
  touches: string[];
}

/** A token or label with its probability before and after the edits. */
export interface PredictedToken {
  text: string;
  id: number;
  before: number;
  after: number;
}

/** What the model predicts at one position: the likeliest before and those after, together. */
export interface Prediction {
  position: number;
  label: string;
  tokens: PredictedToken[];
}

/** What the model writes after the input, greedily; the first `same` characters are equal. */
export interface GeneratedText {
  before: string;
  after: string;
  same: number;
}

/** How much the attention of a head changes: mean total variation of its rows, 0 to 1. */
export interface HeadChange {
  head: string;
  attention: number;
}

/**
 * The edited input; ask for input/{input}, edges/{input}/…, rows, layer, vectors, gaze.
 *
 * It has the tokens of the plain input and is not listed in `about`. `plain` is the same input
 * without edits from the same run, so where nothing changed their difference is exactly zero.
 */
export interface EditedInput {
  input: number;
  plain: number;
  seconds: number;
  notes: string[];
  edits: EditDone[];
  predicts: "next" | "masked" | "label" | "";
  predictions: Prediction[];
  text: GeneratedText | null;
  change: HeadChange[];
}

/** `test_label`: let the live model test the kind of a head on new texts. */
export interface LabelQuestion {
  head: string;
}

/** Whether the kind of a head is that of new texts too, and by how much it leads the others. */
export interface LabelVerdict {
  head: string;
  kind: string;
  verdict: "holds" | "fails" | "undecided";
  sentence: string;
}

/** `leave`: give up a piece of work; one that runs stops at its next step. */
export interface Leave {
  page: string;
  ticket: number;
}

/** The picked token. */
export interface TokenPick {
  side: "query" | "key";
  position: number;
}

/** Several picked tokens, seen together. */
export interface TokenSet {
  side: "query" | "key";
  positions: number[];
}

/** One edit of the list, which can be switched off. */
export interface EditPick {
  on: boolean;
  edit: Record<string, unknown>;
}

/** What the person chose. */
export interface Picks {
  input: number;
  other: number | null;
  tower: string;
  heads: string[];
  token: TokenPick | null;
  pinned: boolean;
  chosen: TokenSet | null;
  together: "mean" | "sum";
  layer: number;
  view: "head" | "model" | "neuron" | "heat" | "logit" | "read";
  hidden: Record<string, number[]>;
  filter: "all" | "aa" | "ab" | "ba" | "bb";
  threshold: number;
  topk: number;
  words: boolean;
  theme: "auto" | "light" | "dark";
  sort: boolean;
  basis: "neurons" | "directions";
  valueWeighted: boolean;
  shownLayers: number[] | null;
  shownHeads: number[] | null;
  tab: string;
  map: string;
  mapHead: string | null;
  colour: string;
  direction: number;
  scaledNorms: boolean;
  search: string;
  searchKind: "exact" | "prefix" | "regex";
  camera: number[] | null;
  lines: boolean;
  labels: boolean;
  sizeByNorm: boolean;
  palette: "default" | "safe";
  score: string;
  across: string;
  up: string;
  kinds: string[];
  order: string;
  lineScore: string;
  versus: number[];
  picture: number;
  combine: "head" | "mean" | "rollout";
  overlay: boolean;
  arrows: boolean;
  flows: boolean;
  flowsFrom: number;
  patches: "off" | "border" | "fill";
  keeps: "any" | "part" | "most";
  trueNear: boolean;
  only: string;
  edits: EditPick[];
  labView: "before" | "after" | "difference";
  shown: "weights" | "moved" | "contribution";
  withoutSinks: boolean;
  logitToken: number | null;
  logitAgainst: number | null;
  logitHead: string;
  labAt: number | null;
  pooled: "strongest" | "mean";
  tileView: number[] | null;
  key: number | null;
  window: number[] | null;
}

/** First word of a path → what answers it. */
export interface Answers {
  about: About;
  progress: MapProgress;
  queue: Queued;
  edit_receipt: EditProofs;
  input: InputInfo;
  edges: Edges;
  rows: RowWeights;
  layer: LayerWeights;
  vectors: Vectors;
  directions: HeadDirections;
  sinks: Sinks;
  logit: LogitAdds;
  tile: TilePacket;
  overview: OverviewPacket;
  picture: Picture;
  gaze: Gaze;
  thumbs: Thumbs;
  map: MapPlaces;
  points: MapPoints;
  norms: MapNorms;
  along: DirectionColumn;
  extra: MapExtra;
  partners: Partners;
  all: AllInfo;
  all_places: AllPoints;
  all_tokens: AllTokens;
  all_column: AllColumn;
  mean: MeanPattern;
  heads: HeadScores;
  heads_without_sinks: HeadScores;
  alike: AlikeHeads;
  card: HeadCard;
  card_without_sinks: HeadCard;
  compare: ComparedModels;
  compare_without_sinks: ComparedModels;
  reaction: Reaction;
}

/** Name of an action → what is sent and what answers it. */
export interface Actions {
  compute: { sent: Compute; answer: MapProgress };
  place: { sent: Place; answer: MapProgress };
  cancel: { sent: Cancel; answer: MapProgress };
  add: { sent: Add; answer: Added };
  edit: { sent: EditInput; answer: EditedInput };
  test_label: { sent: LabelQuestion; answer: LabelVerdict };
  leave: { sent: Leave; answer: Queued };
}

/** First word of a path → what a saved page lacks. */
export const MISSING = {
  "about": "this; open the atlas with attention-atlas serve",
  "progress": "this; open the atlas with attention-atlas serve",
  "queue": "this; open the atlas with attention-atlas serve",
  "edit_receipt": "a model to edit; open the atlas with attention-atlas serve x.atlas --model MODEL",
  "input": "this; open the atlas with attention-atlas serve",
  "edges": "exact weights; save it with exact=True (on the command line --exact)",
  "rows": "exact weights; save it with exact=True (on the command line --exact)",
  "layer": "exact weights; save it with exact=True (on the command line --exact)",
  "vectors": "query and key vectors; save it with exact=True (on the command line --exact)",
  "directions": "the directions of this head; open the atlas with attention-atlas serve",
  "sinks": "this; open the atlas with attention-atlas serve",
  "logit": "what heads add to a logit; open the atlas with attention-atlas serve",
  "tile": "tiles of long inputs; open the atlas with attention-atlas serve",
  "overview": "tiles of long inputs; open the atlas with attention-atlas serve",
  "picture": "this; open the atlas with attention-atlas serve",
  "gaze": "this; open the atlas with attention-atlas serve",
  "thumbs": "this; open the atlas with attention-atlas serve",
  "map": "this map; open the atlas with attention-atlas serve",
  "points": "this map; open the atlas with attention-atlas serve",
  "norms": "vector lengths; open the atlas with attention-atlas serve",
  "along": "this map; open the atlas with attention-atlas serve",
  "extra": "this map; open the atlas with attention-atlas serve",
  "partners": "this map; open the atlas with attention-atlas serve",
  "all": "tokens beyond the map's sample; open the atlas with attention-atlas serve",
  "all_places": "tokens beyond the map's sample; open the atlas with attention-atlas serve",
  "all_tokens": "tokens beyond the map's sample; open the atlas with attention-atlas serve",
  "all_column": "tokens beyond the map's sample; open the atlas with attention-atlas serve",
  "mean": "this map; open the atlas with attention-atlas serve",
  "heads": "what heads do; open the atlas with attention-atlas serve",
  "heads_without_sinks": "scores without sinks; measure the atlas before it is saved: attention-atlas measure --without-sinks",
  "alike": "what heads do; open the atlas with attention-atlas serve",
  "card": "what heads do; open the atlas with attention-atlas serve",
  "card_without_sinks": "scores without sinks; measure the atlas before it is saved: attention-atlas measure --without-sinks",
  "compare": "these models; open the atlas with attention-atlas serve",
  "compare_without_sinks": "scores without sinks; measure the atlas before it is saved: attention-atlas measure --without-sinks",
  "reaction": "these models; open the atlas with attention-atlas serve",
} as const;

/** Picks with a fixed list of words. */
export const CHOICES = {
  "together": ["mean", "sum"],
  "view": ["head", "model", "neuron", "heat", "logit", "read"],
  "filter": ["all", "aa", "ab", "ba", "bb"],
  "theme": ["auto", "light", "dark"],
  "basis": ["neurons", "directions"],
  "searchKind": ["exact", "prefix", "regex"],
  "palette": ["default", "safe"],
  "combine": ["head", "mean", "rollout"],
  "patches": ["off", "border", "fill"],
  "keeps": ["any", "part", "most"],
  "labView": ["before", "after", "difference"],
  "shown": ["weights", "moved", "contribution"],
  "pooled": ["strongest", "mean"],
} as const;

/** The default picks. */
export const START: Picks = {
  "input": 0,
  "other": null,
  "tower": "",
  "heads": [],
  "token": null,
  "pinned": false,
  "chosen": null,
  "together": "mean",
  "layer": 0,
  "view": "head",
  "hidden": {},
  "filter": "all",
  "threshold": 0.0,
  "topk": 0,
  "words": false,
  "theme": "auto",
  "sort": false,
  "basis": "neurons",
  "valueWeighted": false,
  "shownLayers": null,
  "shownHeads": null,
  "tab": "text",
  "map": "",
  "mapHead": null,
  "colour": "side",
  "direction": 0,
  "scaledNorms": false,
  "search": "",
  "searchKind": "exact",
  "camera": null,
  "lines": true,
  "labels": true,
  "sizeByNorm": false,
  "palette": "default",
  "score": "kind",
  "across": "entropy",
  "up": "importance-chosen",
  "kinds": [],
  "order": "head",
  "lineScore": "away",
  "versus": [],
  "picture": -1,
  "combine": "head",
  "overlay": true,
  "arrows": true,
  "flows": false,
  "flowsFrom": 0.1,
  "patches": "border",
  "keeps": "any",
  "trueNear": false,
  "only": "",
  "edits": [],
  "labView": "after",
  "shown": "weights",
  "withoutSinks": false,
  "logitToken": null,
  "logitAgainst": null,
  "logitHead": "",
  "labAt": null,
  "pooled": "strongest",
  "tileView": null,
  "key": null,
  "window": null,
};

export const KIND_COLOURS = {
  "parallel": "#2b7bba",
  "radioactive": "#e1812c",
  "homogeneous": "#8d939c",
  "X-type": "#8c5fbf",
  "compound": "#3f9b5c",
  "mixed": "#c9ccd2",
} as const;

export const METHODS = {
  "umap": "UMAP",
  "tsne": "t-SNE",
  "pca": "PCA",
} as const;

export const DIMS = [2, 3] as const;

export const COLOURS = {
  "side": "query or key",
  "norm": "vector length",
  "direction": "direction of the head",
} as const;

export const HEAD_NUMBERS = {
  "margin": "margin of the kind",
  "agree": "inputs that agree",
  "odd": "worth a look",
} as const;

export const SIDE_COLOURS = {
  "default": {
  "query": "#5FB96C",
  "key": "#E3378F",
},
  "safe": {
  "query": "#2B7BBA",
  "key": "#E1812C",
},
} as const;

export const LONGEST_TEXT = 20000 as const;

export const MOST_WAITING = 8 as const;

export const MOST_EDITS = 100 as const;

export const MOST_GENERATED = 200 as const;

export const LARGEST_ANSWER = 4000000 as const;

export const LONG_INPUT = 2048 as const;

export const TILE = 256 as const;

export const FAINTEST_CELL = 3.844675124951941e-06 as const;

export const MOST_WITHOUT = 64 as const;

export const FAINTEST = 0.05 as const;

export const UNIT = 65535 as const;

export const SIGNED_UNIT = 32767 as const;

export const NO_KIND = 255 as const;

/** How a header names the type of a buffer. */
export const ARRAYS = {
  f4: Float32Array,
  i4: Int32Array,
  i2: Int16Array,
  u4: Uint32Array,
  u2: Uint16Array,
  u1: Uint8Array,
} as const;
