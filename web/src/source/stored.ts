// How does a saved page get its data? Packets are in the document, as base64.
import { AtlasFailure } from "./packet";
import type { Source } from "./source";
import { MISSING } from "./wire";

const ONE_LAYER = /^(?:as\/[^/]+\/[^/]+\/)?edges\/\d+\/[^/]+\/\d+$/;

export function storedSource(document: Document): Source {
  const whole = new Promise<void>((resolve) => {
    if (document.readyState !== "loading") resolve();
    else document.addEventListener("DOMContentLoaded", () => resolve(), { once: true });
  });
  return {
    live: false,
    async get(path) {
      let block = blockOf(document, path);
      // A large page starts with the one layer that it shows first, while the browser still reads the rest.
      if (!block && !ONE_LAYER.test(path)) block = await whole.then(() => blockOf(document, path));
      if (!block) throw new AtlasFailure(missing(path));
      return bytes((block.textContent ?? "").trim());
    },
    ask: () =>
      Promise.reject(
        new AtlasFailure("a saved page cannot compute anything; open the atlas with attention-atlas serve"),
      ),
  };
}

function blockOf(document: Document, path: string): Element | null {
  return document.querySelector(`script[data-path="${CSS.escape(path)}"]`);
}

function missing(path: string): string {
  const word = path.replace(/^as\/[^/]+\/[^/]+\//, "").split("/")[0];
  return `this saved page does not contain ${MISSING[word as keyof typeof MISSING] ?? path}`;
}

function bytes(base64: string): ArrayBuffer {
  // Ten times as fast as atob; browsers have it since 2025.
  const native = (Uint8Array as { fromBase64?: (text: string) => Uint8Array<ArrayBuffer> }).fromBase64;
  if (native) return native.call(Uint8Array, base64).buffer;
  const text = atob(base64);
  const out = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) out[at] = text.charCodeAt(at);
  return out.buffer;
}
