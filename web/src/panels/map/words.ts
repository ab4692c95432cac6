// What does the map show, in words?
import type { Desk } from "../../desk/desk.svelte";
import { choices } from "../../map/colouring";

/** Describe the map on screen: its points, its colours, what was found, and where near means attended. */
export function mapWords(desk: Desk): string {
  const { data, info, single, found } = desk.map;
  if (!data || !info) return "map";
  const colour = choices(data).find(({ name }) => name === desk.picks.colour)?.label ?? "query or key";
  const points = `${data.points.toLocaleString("en")} points, coloured by ${colour}`;
  const search = found ? `; ${found.tokens.toLocaleString("en")} tokens match the search` : "";
  if (single >= 0)
    return `${info.method} map of ${data.names[single]}: ${points}${search}. ${data.verdicts[single].words}`;
  const most = data.verdicts.filter(({ grade }) => grade === "most").length;
  return `${info.method} maps of ${data.names.length} heads, each with ${points}${search}; near means attended in ${most} of them`;
}
