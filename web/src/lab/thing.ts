// What does a person point at? The head, token, line or neuron under the cursor, or else what is picked.
import type { Desk } from "../desk/desk.svelte";
import { headPlace } from "../desk/picks";
import type { About, LayerInfo } from "../source/wire";
import type { Neuron, Thing } from "./offers";

/** What a view knows beyond `hover` and `hoverHead`: positions of tokens, in the units that it shows. */
export interface Pointed {
  head?: string;
  line?: { query: number[]; key: number[] };
  neuron?: Neuron;
}

/** Find the layer of a head or of a whole layer by its name; of "all" the first layer. */
export function layerNamed(about: About, name: string): LayerInfo | undefined {
  const place = headPlace(about, /H\d+$/.test(name) ? name : `${name}H0`);
  const tower = about.towers.find((candidate) => candidate.name === place?.tower) ?? about.towers[0];
  return tower?.layers.find(({ layer }) => layer === place?.layer) ?? tower?.layers[0];
}

/** Name all heads that look at tokens of this stream from tokens of that one. */
export function everyHead(about: About, { queries, keys }: Pick<LayerInfo, "queries" | "keys">): string[] {
  const like = (layer: LayerInfo) => layer.queries === queries && layer.keys === keys;
  const layers = about.towers.flatMap((tower) => tower.layers.map((layer) => ({ tower: tower.name, layer })));
  if (layers.every(({ layer }) => like(layer))) return ["all"];
  return layers
    .filter(({ layer }) => like(layer))
    .map(({ tower, layer }) => `${about.towers.length > 1 ? `${tower}.` : ""}L${layer.layer}`);
}

/** Name heads of one layer; all of them together by the name of the layer. */
export function together(heads: readonly string[], layer: LayerInfo | undefined): string[] {
  const whole = layer !== undefined && layer.heads > 1 && heads.length === layer.heads;
  return whole ? [heads[0].replace(/H\d+$/, "")] : [...heads];
}

/** Get what is under the cursor or, for the keyboard, what has the focus; null if it is nothing that can be edited. */
export function thingAt(desk: Desk, element: Element | null): Thing | null {
  const { pointed, picks } = desk;
  const inMarkup = element?.closest<HTMLElement>("[data-head]")?.dataset["head"];
  const head = inMarkup ?? pointed?.head ?? desk.hoverHead;
  const heads = head ? [head] : together(picks.heads, desk.layer);
  const layer = heads[0] ? layerNamed(desk.about, heads[0]) : undefined;
  if (!layer) return null;
  const thing: Thing = { heads, every: everyHead(desk.about, layer), input: picks.input };
  if (!desk.tab.closeUp?.(desk)) return thing;
  const unit = (token: { side: "query" | "key"; position: number }) =>
    desk.unitOf(token)?.positions ?? [token.position];
  const token = desk.hover ?? (picks.pinned ? picks.token : null);
  if (token) thing.token = { side: token.side, positions: unit(token) };
  thing.neuron = pointed?.neuron;
  thing.line = pointed?.line;
  const other = picks.pinned ? picks.token : null;
  if (!thing.line && desk.hover && other && other.side !== desk.hover.side) {
    const [query, key] = desk.hover.side === "key" ? [other, desk.hover] : [desk.hover, other];
    thing.line = { query: unit(query), key: unit(key) };
  }
  return thing;
}
