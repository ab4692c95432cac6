// How is a picture loaded? As a bitmap for the canvas, and as a data: address for an exported figure.
import type { Picture } from "../source/wire";

export interface Loaded {
  bitmap: ImageBitmap;
  /** Get the picture as a data: address. */
  address(): string;
}

export async function loadPicture({ data, mime }: Pick<Picture, "data" | "mime">): Promise<Loaded> {
  // A copy: the bytes of the packet may be shared with other answers.
  const bytes = data.data.slice();
  const bitmap = await createImageBitmap(new Blob([bytes], { type: mime })).catch(() => {
    throw new Error("this browser cannot read the picture; open the page in another browser");
  });
  return { bitmap, address: () => `data:${mime};base64,${base64(bytes)}` };
}

const STEP = 0x8000;

function base64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += STEP) text += String.fromCharCode(...bytes.subarray(at, at + STEP));
  return btoa(text);
}
