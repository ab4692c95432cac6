// How does the keyboard go from point to point on the map of a head? Along the picked input.
import type { Desk } from "../../desk/desk.svelte";

/** Pick the point of the next or previous query of the input; the first step opens the head. */
export function stepPoint(desk: Desk, by: number): void {
  const { map } = desk;
  const { data } = map;
  if (!data) return;
  if (map.single < 0) return void map.enter(desk.focus);
  const own: number[] = [];
  for (let at = 0; at < data.queries; at++) if (data.input[at] === desk.picks.input) own.push(at);
  // An input that is not on the map has no points; all points are walked then.
  const all = own.length > 0 ? own : Array.from({ length: data.queries }, (_, at) => at);
  all.sort((a, b) => data.input[a] - data.input[b] || data.position[a] - data.position[b]);
  const now = desk.picks.pinned ? all.indexOf(map.picked) : -1;
  const to = all[now < 0 ? 0 : Math.min(all.length - 1, Math.max(0, now + by))];
  if (to !== undefined && to !== map.picked) map.pick(to);
}
