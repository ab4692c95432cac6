// What the person chose: its start, and how an address holds it.
import { CHOICES, KIND_COLOURS, START, type About, type LayerInfo, type Picks, type TowerInfo } from "../source/wire";
import type { Tab } from "./tab";

export { START, type Picks } from "../source/wire";

/** The picks as the desk holds them: heads by names that say tower and layer too, so that nothing is held twice. */
export type Chosen = Omit<Picks, "tower" | "layer" | "mapHead"> & {
  /** Whether the map is inside the head in focus; else it shows the matrix of all heads. */
  inHead: boolean;
};

/** Head names carry their tower only where there is more than one. */
export function headName(about: About, tower: string, layer: number, head: number): string {
  return `${about.towers.length > 1 ? `${tower}.` : ""}L${layer}H${head}`;
}

export interface HeadPlace {
  tower: string;
  layer: number;
  head: number;
}

export function headPlace(about: About, name: string): HeadPlace | null {
  const found = /^(?:(.+)\.)?L(\d+)H(\d+)$/.exec(name);
  if (!found) return null;
  return { tower: found[1] ?? about.towers[0]?.name ?? "", layer: Number(found[2]), head: Number(found[3]) };
}

/** Where a head is, if this atlas has it. */
function known(about: About, name: string | null | undefined): HeadPlace | null {
  const place = headPlace(about, name ?? "");
  const tower = about.towers.find((one) => one.name === place?.tower);
  const layer = tower?.layers.find((one) => one.layer === place?.layer);
  return place && layer && place.head < layer.heads ? place : null;
}

/** Returns the picks as an address or Python has them. */
export function picksOf({ inHead, ...picks }: Chosen, about: About): Picks {
  const focus = picks.heads[0] ?? "";
  const { tower, layer } = headPlace(about, focus) ?? { tower: about.towers[0]?.name ?? "", layer: 0 };
  return { ...START, ...picks, tower, layer, mapHead: inHead ? focus : null };
}

/** Returns what this atlas and this tab can show of the picks: what does not exist falls back to what does. */
export function fitting(picks: Partial<Picks>, about: About, tab: Tab): Chosen {
  const { tower: _tower, layer: _layer, mapHead, ...rest }: Picks = { ...START, ...picks };
  const inHead = known(about, mapHead) !== null;
  const has = (input: number | null) => about.inputs.some((one) => one.number === input);
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

/** Returns the names of the heads that are meant, all of one layer: those named, else the whole layer. */
function inView(picks: Partial<Picks>, about: About, tab: Tab): string[] {
  const names = [...(picks.heads ?? [])];
  const alone = (heads: string[]) => tab.alone?.({ heads, mapHead: picks.mapHead ?? null });
  const place = known(about, alone([]));
  if (place) return [headName(about, place.tower, place.layer, place.head)];
  const named = names.map((name) => headPlace(about, name)).find((place) => place !== null);
  const tower = about.towers.find((one) => one.name === (picks.tower || named?.tower)) ?? about.towers[0];
  const layerNumbered = (number: number | undefined) => tower?.layers.find((one) => one.layer === number);
  const layer = layerNumbered(picks.layer ?? named?.layer) ?? layerNumbered(named?.layer) ?? tower?.layers[0];
  const heads = headsIn(names, about, tower, layer);
  const one = alone(heads);
  return one ? [one] : heads;
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

/** A query string, with only what differs from the start and from the tab that the page opens on; lists as JSON. */
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

/** Anyone may write an address: what is not of its kind is left out. */
function read(name: string, text: string): unknown {
  const start = START[name as keyof Picks];
  if (name === "heads") return text.split(",").filter(Boolean);
  if (name === "kinds") return text.split(",").filter((kind) => kind in KIND_COLOURS);
  const words: readonly string[] | undefined = CHOICES[name as keyof typeof CHOICES];
  if (words) return words.includes(text) ? text : undefined;
  if (typeof start === "string" || name === "mapHead") return text;
  if (typeof start === "boolean") return text === "true";
  if (typeof start === "number" || name === "other")
    return Number.isFinite(Number(text)) && text !== "" ? Number(text) : undefined;
  try {
    return checked(name, JSON.parse(text));
  } catch {
    return undefined;
  }
}

const whole = (value: unknown): value is number[] => Array.isArray(value) && value.every(Number.isInteger);

function checked(name: string, value: unknown): unknown {
  if (name === "shownLayers" || name === "shownHeads" || name === "versus") return whole(value) ? value : undefined;
  if (name === "camera")
    return Array.isArray(value) && value.length === 5 && value.every(Number.isFinite) ? value : undefined;
  if (typeof value !== "object" || value === null) return undefined;
  if (name === "hidden") return Object.values(value).every(whole) ? value : undefined;
  const { side, position } = value as { side?: unknown; position?: unknown };
  return (side === "query" || side === "key") && Number.isInteger(position) ? { side, position } : undefined;
}
