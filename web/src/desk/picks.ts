// What the person chose: its start, and how an address holds it.
import { CHOICES, KIND_COLOURS, START, type About, type LayerInfo, type Picks, type TowerInfo } from "../source/wire";

export { START, type Picks } from "../source/wire";

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

/** Picks that this atlas can show: what does not exist falls back to what does. */
export function fitting(picks: Partial<Picks>, about: About): Picks {
  const out: Picks = { ...START, ...picks, hidden: { ...picks.hidden } };
  const known = (input: number | null) => about.inputs.some((one) => one.number === input);
  if (!known(out.input)) out.input = about.inputs[0]?.number ?? 0;
  if (!known(out.other)) out.other = null;
  out.versus = [...new Set(out.versus ?? [])].filter((place) => about.atlases[place] !== undefined);
  // On the map the head in view is the picked one; close-ups may show several and keep the map's for the way back.
  const single = out.mapHead === null ? null : headPlace(about, out.mapHead);
  const there = about.towers
    .find((one) => one.name === single?.tower)
    ?.layers.find((one) => one.layer === single?.layer);
  if (!single || !there || single.head >= there.heads) out.mapHead = null;
  else if (out.tab === "map") Object.assign(out, { heads: [out.mapHead], tower: single.tower, layer: single.layer });
  const named = (out.heads ?? []).map((name) => headPlace(about, name)).find((place) => place !== null);
  if (!picks.tower && named) out.tower = named.tower;
  const tower = about.towers.find((one) => one.name === out.tower) ?? about.towers[0];
  if (!tower) return out;
  out.tower = tower.name;
  if (picks.layer === undefined && named) out.layer = named.layer;
  const layer =
    tower.layers.find((one) => one.layer === out.layer) ??
    tower.layers.find((one) => one.layer === named?.layer) ??
    tower.layers[0];
  out.layer = layer?.layer ?? 0;
  out.heads = headsIn(out.heads ?? [], about, tower, layer);
  // A picture shows one head at a time.
  if (out.tab === "image") out.heads = out.heads.slice(0, 1);
  return out;
}

function headsIn(names: readonly string[], about: About, tower: TowerInfo, layer: LayerInfo | undefined): string[] {
  if (!layer) return [];
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

/** A query string, with only what differs from the start; lists and objects as JSON. */
export function toHash(picks: Picks): string {
  const out = new URLSearchParams();
  for (const [name, value] of Object.entries(picks)) {
    if (JSON.stringify(value) === JSON.stringify(START[name as keyof Picks])) continue;
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
