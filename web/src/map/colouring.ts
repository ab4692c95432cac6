// Which colour has each point? A byte for each point, two scales of 256 colours (queries, keys), and a legend.
import { css, headColours, mix, PAPER, signed, type Rgb } from "../draw/colour";
import { rgb, scaleOf, type ScaleName } from "../draw/scales";
import { COLOURS, SIDE_COLOURS, UNIT, type NumberColumn, type Picks } from "../source/wire";
import type { Column, MapData } from "./data";

export interface Legend {
  /** The texts at the ends of a continuous scale. */
  low: string;
  high: string;
  note: string;
  /** One or two scales as CSS colours, and the side of each. */
  ramps: { who: string; colours: string[] }[];
  names: { text: string; query: string; key: string }[];
}

export interface Colouring {
  values: Uint8Array;
  scale: Uint8Array;
  legend: Legend;
  /** Get the bytes of other points by their values of the same column. */
  bytes: (values: ArrayLike<number>) => Uint8Array;
  /** Whether the colour is the length of each head's vectors. */
  byNorm: boolean;
}

interface Look {
  palette: Picks["palette"];
  dark: boolean;
}

const pairOf = ({ query, key }: { query: string; key: string }, ramps: ScaleName[]) => ({
  query: rgb(query),
  key: rgb(key),
  ramps,
});
export const PAIRS = {
  default: pairOf(SIDE_COLOURS.default, ["YlGn", "PuRd"]),
  safe: pairOf(SIDE_COLOURS.safe, ["Blues", "Oranges"]),
};
const FIVE = {
  default: ["E3378F", "EDB50E", "5FB96C", "528DDB", "A144DB"].map(rgb),
  safe: ["D55E00", "E6B800", "009E73", "0072B2", "CC79A7"].map(rgb),
};
/** The most names with a colour; the others share one grey. */
const MOST_NAMES = 12;
const NONE = 255;
const OTHER = 254;

/** List the colourings of the menu. */
export function choices(data: MapData): { name: string; label: string }[] {
  const own = data.colours.map(({ name, label }) => ({ name, label }));
  const place = own.findIndex(({ name }) => name === "mod5") + 1;
  return [
    { name: "side", label: COLOURS.side },
    ...own.slice(0, place),
    { name: "norm", label: COLOURS.norm },
    { name: "direction", label: COLOURS.direction },
    ...own.slice(place),
  ];
}

/** Get the colours of a column, or of a direction of a head, which is loaded apart from the map. */
export function colouring(data: MapData, name: string, look: Look, direction?: NumberColumn): Colouring {
  if (name === "norm") return byNorm(data, look);
  if (name === "direction" && direction) return byDirection(data, direction, look);
  const column = data.colours.find((candidate) => candidate.name === name);
  if (!column) return bySide(data, look);
  return column.kind === "number" ? byNumber(column, look) : byName(column, look);
}

const EMPTY: Legend = { low: "", high: "", note: "", ramps: [], names: [] };

function bySide(data: MapData, { palette }: Look): Colouring {
  const pair = PAIRS[palette];
  const names = [
    { text: "query", query: css(pair.query), key: "" },
    { text: "key", query: css(pair.key), key: "" },
  ];
  return {
    values: new Uint8Array(data.points),
    scale: pack([pair.query], [pair.key]),
    legend: { ...EMPTY, names },
    bytes: (values) => new Uint8Array(values.length),
    byNorm: false,
  };
}

function byNorm(data: MapData, { palette, dark }: Look): Colouring {
  const ramps = PAIRS[palette].ramps.map((ramp) => scaleOf(ramp, dark));
  const legend = { ...EMPTY, low: "shortest", high: "longest", note: "of each head’s vectors", ramps: both(ramps) };
  return {
    values: new Uint8Array(data.points),
    scale: pack(ramps[0], ramps[1]),
    legend,
    bytes: (values) => new Uint8Array(values.length),
    byNorm: true,
  };
}

/** Colour by a direction: blue above zero, orange below; points that were added later have none. */
function byDirection(data: MapData, column: NumberColumn, { dark }: Look): Colouring {
  const scale = [...Array.from({ length: 255 }, (_, at) => signed(at / 127 - 1, 1, dark)), greyOf(dark)];
  const bytes = (values: ArrayLike<number>) =>
    Uint8Array.from(values, (value) => (value === UNIT ? NONE : Math.round((254 * value) / (UNIT - 1))));
  const values = new Uint8Array(data.points).fill(NONE);
  const given = bytes(column.values.data);
  if (given.length === data.points) values.set(given);
  const written = (value: number) => value.toPrecision(2).replace("-", "−");
  const ramps = [{ who: "", colours: thinned(scale.slice(0, 255)) }];
  return {
    values,
    bytes,
    scale: pack(scale, scale),
    legend: { ...EMPTY, low: written(column.low), high: written(column.high), note: column.label, ramps },
    byNorm: false,
  };
}

/** Colour by a number; positions have a scale for queries and one for keys, other numbers one for both. */
function byNumber(column: Extract<Column, { kind: "number" }>, { palette, dark }: Look): Colouring {
  const apart = column.name === "position";
  const plain = column.name === "hue" ? hues(column.low, column.high) : scaleOf("viridis", dark, 255);
  const scales = apart ? PAIRS[palette].ramps.map((ramp) => scaleOf(ramp, dark, 255)) : [plain];
  const grey = greyOf(dark);
  const [query, key] = [scales[0], scales.at(-1) as Rgb[]].map((scale) => [...scale, grey]);
  const byte = Uint8Array.from({ length: UNIT + 1 }, (_, value) =>
    value === UNIT ? NONE : Math.round(254 * along(column, value / (UNIT - 1))),
  );
  const bytes = (values: ArrayLike<number>) => looked(values, byte);
  const shown = (value: number) => written(value, column.whole);
  const ramps = apart ? both(scales) : [{ who: "", colours: thinned(scales[0]) }];
  const note =
    column.scale === "log" && column.low > 0 ? "log scale" : column.name === "position" ? "of the input’s length" : "";
  return {
    values: bytes(column.values.data),
    bytes,
    scale: pack(query, key),
    legend: { ...EMPTY, low: shown(column.low), high: shown(column.high), note, ramps },
    byNorm: false,
  };
}

/** Get the colours of the hue scale: the colour circle itself, whose ends meet. */
function hues(low: number, high: number): Rgb[] {
  return Array.from({ length: 255 }, (_, at) => {
    const turn = (low + ((high - low) * at) / 254) / 60;
    return [5, 3, 1].map((from) =>
      Math.round(225 * (1 - Math.max(0, Math.min(1, (from + turn) % 6, 4 - ((from + turn) % 6))))),
    ) as unknown as Rgb;
  });
}

function byName(column: Extract<Column, { kind: "name" }>, { palette, dark }: Look): Colouring {
  const none = column.values.data instanceof Uint8Array ? 255 : UNIT;
  const counts = new Uint32Array(column.names.length);
  for (const value of column.values.data) if (value !== none) counts[value]++;
  const shown =
    column.names.length <= MOST_NAMES
      ? [...column.names.keys()]
      : [...column.names.keys()].sort((a, b) => counts[b] - counts[a]).slice(0, MOST_NAMES);
  const place = new Uint8Array(column.names.length).fill(OTHER);
  shown.forEach((name, at) => (place[name] = at));
  const strong = column.name === "mod5" ? FIVE[palette] : headColours(Math.max(2, shown.length), dark);
  const paper = PAPER[dark ? "dark" : "light"];
  const pale = strong.map((colour) => mix(colour, paper, 0.52));
  const grey = greyOf(dark);
  const filled = (colours: Rgb[]) =>
    Array.from({ length: 256 }, (_, at) => (at < shown.length ? colours[at % colours.length] : grey));
  const names = shown.map((name, at) => ({
    text: column.names[name],
    query: css(strong[at % strong.length]),
    key: css(pale[at % pale.length]),
  }));
  if (shown.length < column.names.length)
    names.push({ text: `${column.names.length - shown.length} others`, query: css(grey), key: "" });
  const byte = new Uint8Array(none + 1).fill(NONE);
  byte.set(place);
  byte[none] = NONE;
  const bytes = (values: ArrayLike<number>) => looked(values, byte);
  return {
    values: bytes(column.values.data),
    bytes,
    scale: pack(filled(strong), filled(pale)),
    legend: { ...EMPTY, names, note: "keys are paler" },
    byNorm: false,
  };
}

function looked(values: ArrayLike<number>, byte: Uint8Array): Uint8Array {
  const out = new Uint8Array(values.length);
  for (let at = 0; at < out.length; at++) out[at] = byte[values[at]];
  return out;
}

/** Write the value of one point. */
export function told(column: Column, at: number): string {
  const value = column.values.data[at];
  if (column.kind === "name") return column.names[value] ?? "none";
  if (value === UNIT) return "none";
  return written(column.low + (value / (UNIT - 1)) * (column.high - column.low), column.whole);
}

/** Get the place on the colour scale, 0 to 1; a log scale starts at the smallest number above zero. */
function along({ scale, low, high }: Extract<Column, { kind: "number" }>, share: number): number {
  if (scale === "linear" || low <= 0 || high <= low) return share;
  return Math.log((low + share * (high - low)) / low) / Math.log(high / low);
}

export const written = (value: number, whole: boolean): string =>
  whole ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(3)));

const greyOf = (dark: boolean): Rgb => (dark ? [96, 102, 112] : [178, 182, 190]);
const thinned = (scale: Rgb[]): string[] => scale.filter((_, at) => at % 16 === 0 || at === scale.length - 1).map(css);
const both = (scales: Rgb[][]) => [
  { who: "query", colours: thinned(scales[0]) },
  { who: "key", colours: thinned(scales[1]) },
];

/** Fill a scale up to 256 colours by repeating its last colour. */
function pack(query: readonly Rgb[], key: readonly Rgb[]): Uint8Array {
  const out = new Uint8Array(2 * 256 * 4).fill(255);
  [query, key].forEach((list, row) => {
    for (let at = 0; at < 256; at++) out.set(list[Math.min(at, list.length - 1)], (row * 256 + at) * 4);
  });
  return out;
}
