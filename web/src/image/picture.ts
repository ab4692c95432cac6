// A picture as it comes over the wire: once for the canvas, once as an address that a figure can carry.
import type { Picture } from "../source/wire";

export interface Loaded {
  bitmap: ImageBitmap;
  /** A data: address; made when it is asked for. */
  address(): string;
}

export async function loadPicture({ data, mime }: Pick<Picture, "data" | "mime">): Promise<Loaded> {
  // A copy, since the packet's bytes may be shared with other answers.
  const bytes = data.data.slice();
  const bitmap = await createImageBitmap(new Blob([bytes], { type: mime })).catch(() => {
    throw new Error("this browser cannot read the picture; look at it in another one");
  });
  return { bitmap, address: () => `data:${mime};base64,${base64(bytes)}` };
}

const STEP = 0x8000;

function base64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += STEP) text += String.fromCharCode(...bytes.subarray(at, at + STEP));
  return btoa(text);
}
