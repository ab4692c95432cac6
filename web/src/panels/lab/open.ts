// How does the Lab lead to a close-up? As before, after and difference, if edits are in force.
import type { Desk } from "../../desk/desk.svelte";
import type { Picks } from "../../source/wire";

/** Longer inputs have no list of tokens to choose from; the position is asked for. */
export const MOST_LISTED = 400;

export const CLOSE_UPS: { view: Picks["view"]; text: string }[] = [
  { view: "head", text: "Lines" },
  { view: "heat", text: "Heat-map" },
  { view: "neuron", text: "Neurons" },
  { view: "model", text: "All heads" },
];

export function openCloseUp(desk: Desk, view: Picks["view"]): void {
  desk.picks.labView = "difference";
  desk.setTab("text", view);
}
