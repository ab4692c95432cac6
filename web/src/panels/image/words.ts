// What does the Image tab show, in words, and why may it have nothing to show?
import type { Desk } from "../../desk/desk.svelte";
import { other } from "../../desk/image.svelte";
import { number } from "../../weights/partners";

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

/** Describe the pictures on screen, and what the picked patch looks at most. */
export function pictureWords(desk: Desk): string {
  const { image } = desk;
  const names = (image.input?.pictures ?? []).map(({ name, width, height }) => `${name}, ${width} × ${height}`);
  const patches = image.covers.reduce((count, cover) => count + cover.patches.length, 0);
  const whole = `${names.join("; ")}: ${patches} patches, ${desk.focus}`;
  const { token, shades } = image;
  if (!token || !shades) return `${whole}; no patch is picked`;
  let best = 0;
  shades.weights.forEach((weight, at) => Math.abs(weight) > Math.abs(shades.weights[best]) && (best = at));
  const far = { side: other(token.side), position: best };
  const verb = token.side === "query" ? "looks most at" : "is looked at most by";
  return `${whole}; ${image.nameOf(token)} ${verb} ${image.nameOf(far)}, ${number(shades.weights[best], shades.signed)}`;
}
