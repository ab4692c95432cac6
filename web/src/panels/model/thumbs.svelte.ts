// Which rows does each thumbnail show? Without hidden tokens, with filters, or the difference of two inputs.
import type { Desk } from "../../desk/desk.svelte";
import { placeOf, type Scene } from "../../desk/store";
import { align, difference } from "../../weights/compare";
import { blank, hide } from "../../weights/hide";
import { fromEdges, type HeadRows } from "../../weights/rows";
import { tokensOf } from "../../desk/store";
import { keptOf } from "../../desk/token_set";
import { linesOf, linesOfTokens } from "../../weights/lines";
import type { LayerInfo } from "../../source/wire";

export type Shown = "first" | "second" | "difference";

export function thumbRows(desk: Desk, layer: LayerInfo, head: number, shown: Shown): HeadRows | null {
  const [firstScene, secondScene] = [desk.one.whole, desk.two.whole];
  if (!firstScene) return null;
  if (shown === "first" || !secondScene) return seen(desk, firstScene, layer, head);
  if (shown === "second") return seen(desk, secondScene, layer, head);
  const [first, second] = [seen(desk, firstScene, layer, head), seen(desk, secondScene, layer, head)];
  const pairs = (stream: string) =>
    align(
      tokensOf(firstScene, stream).map((token) => token.text),
      tokensOf(secondScene, stream).map((token) => token.text),
    );
  return first && second && difference(first, second, pairs(layer.queries), pairs(layer.keys));
}

function seen(desk: Desk, scene: Scene, layer: LayerInfo, head: number): HeadRows | null {
  const place = placeOf(scene, layer.layer);
  if (place < 0) return null;
  const { hidden, filter } = desk.picks;
  const without = scene.as ? blank : hide;
  const rows = without(
    fromEdges(scene.edges, place, head),
    new Set(hidden[layer.queries] ?? []),
    desk.hiddenKeys(layer.keys),
  );
  const set = keptOf(desk.picks);
  if (filter === "all" && !set) return rows;
  const [looking, looked] = [tokensOf(scene, layer.queries), tokensOf(scene, layer.keys)];
  const all = linesOf(rows, {
    threshold: 0,
    topk: 0,
    filter,
    rowSegment: (at) => looking[at].segment,
    columnSegment: (at) => looked[at].segment,
  });
  const lines = set ? linesOfTokens(all, set.side, set.positions) : all;
  return kept(rows, lines.from, lines.to, lines.weight, lines.count);
}

/** Make rows from the lines that a filter kept. */
function kept(rows: HeadRows, from: Uint32Array, to: Uint32Array, weights: Float32Array, count: number): HeadRows {
  const weight = new Float32Array(rows.weight.length);
  const index = new Uint32Array(rows.weight.length);
  const filled = new Uint32Array(rows.n);
  for (let at = 0; at < count; at++) {
    const place = from[at] * rows.k + filled[from[at]]++;
    weight[place] = weights[at];
    index[place] = to[at];
  }
  return { ...rows, whole: false, weight, index };
}
