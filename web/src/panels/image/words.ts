// Why does the Image tab have nothing to show?
import type { Desk } from "../../desk/desk.svelte";

/** Get the reason why there is nothing to show; empty if there is something. */
export function emptyWords(desk: Desk): string {
  const { image, about } = desk;
  if (!about.pictures)
    return "this atlas has no pictures; capture a vision model over image files, as in: attention-atlas capture builtin:vit photo.jpg";
  if (!image.input) return "";
  if (image.input.pictures.length === 0) return "this input has no picture; pick another input above, or press ]";
  if (image.patched.length === 0)
    return "this atlas does not say which tokens are patches, so nothing can be drawn on the picture; use the Text tab";
  if (!image.placed)
    return `the tokens of layer ${desk.place.layer} of ${desk.tower.name} have no place in the picture; pick another tower or layer`;
  return "";
}
