// What has the person picked, and how does an address write it?
import { CHOICES, KIND_COLOURS, LONG_INPUT, MOST_WITHOUT, START } from "../source/wire";
import type { About, LayerInfo, Picks, TowerInfo } from "../source/wire";
import { readEdits } from "../lab/edits";
import type { Tab } from "./tab";

export { START, type Picks } from "../source/wire";

/** The picks of the desk. Names of heads contain tower and layer, so these are not stored a second time. */
export type Chosen = Omit<Picks, "tower" | "layer" | "mapHead"> & {
  /** Whether the first picked head fills the map; otherwise the map shows all heads. */
  inHead: boolean;
};

/** Write the name of a head, with its tower if the model has several. */
export function headName(about: About, tower: string, layer: number, head: number): string {
  return `${about.towers.length > 1 ? `${tower}.` : ""}L${layer}H${head}`;
}

export interface HeadPlace {
  tower: string;
  layer: number;
  head: number;
}

/** Read the name of a head; null if it is not one. */
export function headPlace(about: About, name: string): HeadPlace | null {
  const parts = /^(?:(.+)\.)?L(\d+)H(\d+)$/.exec(name);
  if (!parts) return null;
  return { tower: parts[1] ?? about.towers[0]?.name ?? "", layer: Number(parts[2]), head: Number(parts[3]) };
}

/** Read the name of a head; null if this atlas does not have it. */
function known(about: About, name: string | null | undefined): HeadPlace | null {
  const place = headPlace(about, name ?? "");
  const tower = about.towers.find(({ name }) => name === place?.tower);
  const layer = tower?.layers.find(({ layer }) => layer === place?.layer);
  return place && layer && place.head < layer.heads ? place : null;
}

/** Tell whether an input is too long to be shown whole. */
export function isLong(about: About, input: number | null): boolean {
  return (about.inputs.find(({ number }) => number === input)?.tokens ?? 0) > LONG_INPUT;
}

/** Write what stands before the paths of attention that is not shown as weights, without some keys. */
export function asPath(shown: Picks["shown"], hidden: Iterable<number>): string {
  const keys = [...hidden].sort((a, b) => a - b);
  return `as/${shown}/${keys.slice(0, MOST_WITHOUT).join(",") || "-"}`;
}

/** Get the picks in the form of addresses and of Python. */
export function picksOf({ inHead, ...picks }: Chosen, about: About): Picks {
  const focus = picks.heads[0] ?? "";
  const { tower, layer } = headPlace(about, focus) ?? { tower: about.towers[0]?.name ?? "", layer: 0 };
  return { ...START, ...picks, tower, layer, mapHead: inHead ? focus : null };
}

/** Get picks that this atlas and this tab can show; what does not exist is replaced by what does. */
export function fitting(picks: Partial<Picks>, about: About, tab: Pick<Tab, "name" | "alone">): Chosen {
  const { tower: _tower, layer: _layer, mapHead, ...rest }: Picks = { ...START, ...picks };
  const inHead = known(about, mapHead) !== null;
  const has = (input: number | null) => about.inputs.some(({ number }) => number === input);
  return {
    ...rest,
    inHead,
    tab: tab.name,
    hidden: { ...rest.hidden },
    input: has(rest.input) ? rest.input : (about.inputs[0]?.number ?? 0),
    other: has(rest.other) ? rest.other : null,
    versus: [...new Set(rest.versus)].filter((place) => about.atlases[place] !== undefined),
    heads: inView({ ...picks, mapHead: inHead ? mapHead : null }, about, tab),
  };
}

/** List the picked heads, all of one layer: the ones named, or all heads of the layer. */
function inView(picks: Partial<Picks>, about: About, tab: Pick<Tab, "alone">): string[] {
  const names = [...(picks.heads ?? [])];
  const alone = (heads: string[]) => tab.alone?.({ heads, mapHead: picks.mapHead ?? null });
  const place = known(about, alone([]));
  if (place) return [headName(about, place.tower, place.layer, place.head)];
  const named = names.map((name) => headPlace(about, name)).find((place) => place !== null);
  const tower = about.towers.find(({ name }) => name === (picks.tower || named?.tower)) ?? about.towers[0];
  const layerNumbered = (number: number | undefined) => tower?.layers.find(({ layer }) => layer === number);
  const layer = layerNumbered(picks.layer ?? named?.layer) ?? layerNumbered(named?.layer) ?? tower?.layers[0];
  const heads = headsIn(names, about, tower, layer);
  const only = alone(heads);
  return only ? [only] : heads;
}

function headsIn(
  names: readonly string[],
  about: About,
  tower: TowerInfo | undefined,
  layer: LayerInfo | undefined,
): string[] {
  if (!tower || !layer) return [];
  const kept = names.filter((name) => {
    const place = headPlace(about, name);
    return place?.tower === tower.name && place.layer === layer.layer && place.head < layer.heads;
  });
  if (kept.length > 0)
    return kept
      .map((name) => name.replace(/^.*\./, ""))
      .map((name) => (about.towers.length > 1 ? `${tower.name}.${name}` : name));
  return Array.from({ length: layer.heads }, (_, head) => headName(about, tower.name, layer.layer, head));
}

/** Write the picks as a query string, without those at their start value; lists are JSON. */
export function toHash(picks: Picks, opening = START.tab): string {
  const out = new URLSearchParams();
  for (const [name, value] of Object.entries(picks)) {
    const start = JSON.stringify(value) === JSON.stringify(START[name as keyof Picks]);
    if (start && !(name === "tab" && value !== opening)) continue;
    const plain = typeof value === "string" || typeof value === "number" || typeof value === "boolean";
    if (name === "heads" || name === "kinds") out.set(name, (value as string[]).join(","));
    else out.set(name, plain ? String(value) : JSON.stringify(value));
  }
  return out.toString().replaceAll("%2C", ",").replaceAll("%3A", ":").replaceAll("%22", "'");
}

export function fromHash(hash: string): Partial<Picks> {
  const out: Record<string, unknown> = {};
  for (const [name, text] of new URLSearchParams(hash.replace(/^#/, "").replaceAll("'", "%22"))) {
    if (!(name in START)) continue;
    const value = read(name, text);
    if (value !== undefined) out[name] = value;
  }
  return out as Partial<Picks>;
}

/** Read one pick of an address; undefined if it has a wrong type, since anyone can write an address. */
function read(name: string, text: string): unknown {
  const start = START[name as keyof Picks];
  if (name === "heads") return text.split(",").filter(Boolean);
  if (name === "kinds") return text.split(",").filter((kind) => kind in KIND_COLOURS);
  const words: readonly string[] | undefined = CHOICES[name as keyof typeof CHOICES];
  if (words) return words.includes(text) ? text : undefined;
  if (typeof start === "string" || name === "mapHead") return text;
  if (typeof start === "boolean") return text === "true";
  if (typeof start === "number" || ["other", "labAt", "key", "logitToken", "logitAgainst"].includes(name))
    return Number.isFinite(Number(text)) && text !== "" ? Number(text) : undefined;
  try {
    return checked(name, JSON.parse(text));
  } catch {
    return undefined;
  }
}

const whole = (value: unknown): value is number[] => Array.isArray(value) && value.every(Number.isInteger);
const numbers = (value: unknown, count: number): boolean =>
  Array.isArray(value) && value.length === count && value.every(Number.isFinite);

function checked(name: string, value: unknown): unknown {
  if (name === "shownLayers" || name === "shownHeads" || name === "versus") return whole(value) ? value : undefined;
  if (name === "camera") return numbers(value, 5) ? value : undefined;
  if (name === "tileView") return numbers(value, 3) ? value : undefined;
  if (name === "window") return numbers(value, 2) && whole(value) ? value : undefined;
  if (name === "edits") return readEdits(value);
  if (typeof value !== "object" || value === null) return undefined;
  if (name === "hidden") return Object.values(value).every(whole) ? value : undefined;
  const { side, position, positions } = value as { side?: unknown; position?: unknown; positions?: unknown };
  if (side !== "query" && side !== "key") return undefined;
  if (name === "chosen") return whole(positions) && positions.length > 1 ? { side, positions } : undefined;
  return Number.isInteger(position) ? { side, position } : undefined;
}
