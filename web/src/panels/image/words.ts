// How the image view speaks of patches and of what it cannot show.
import type { Desk } from "../../desk/desk.svelte";

/** Why there is nothing to see; empty where there is. */
export function emptyWords(desk: Desk): string {
  const { image, about } = desk;
  if (!about.pictures)
    return "this atlas has no pictures; capture a vision model over image files, as in: attention-atlas capture builtin:vit photo.jpg";
  if (!image.input) return "";
  if (image.input.pictures.length === 0) return "this input has no picture; pick another one above, or press ]";
  if (image.patched.length === 0)
    return "the patches of this model could not be told from its tokens, so nothing can be drawn on the picture";
  if (!image.placed)
    return `the tokens of layer ${desk.place.layer} of ${desk.tower.name} have no place in the picture; pick another tower or layer`;
  return "";
}
