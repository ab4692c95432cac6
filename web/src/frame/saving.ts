// How is the panel on screen saved as a figure, and its link copied?
import type { Desk } from "../desk/desk.svelte";
import { sentence } from "../desk/pane.svelte";
import { savePng, saveSvg } from "../draw/save";

export async function saveFigure(desk: Desk, kind: "svg" | "png"): Promise<void> {
  const name = `attention-${desk.tab.figureName?.(desk) ?? desk.tab.name}-${desk.focus}`;
  const svg = desk.figure?.();
  if (!svg) return void (desk.note = "nothing to export yet; wait until the picture is drawn");
  try {
    if (kind === "svg") saveSvg(svg, name);
    else await savePng(svg, name);
  } catch (error) {
    desk.note = sentence(error);
  }
}

export async function copyLink(): Promise<void> {
  await navigator.clipboard?.writeText(location.href).catch(() => {});
}
