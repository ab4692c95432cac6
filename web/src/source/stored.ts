// The saved file: packets lie in the document itself, as base64.
import { AtlasFailure } from "./packet";
import type { Source } from "./source";

export function storedSource(document: Document): Source {
  const blocks = new Map<string, string>();
  for (const block of document.querySelectorAll<HTMLScriptElement>("script[data-path]")) {
    blocks.set(block.dataset["path"] ?? "", block.textContent ?? "");
  }
  return {
    live: false,
    get(path) {
      const text = blocks.get(path);
      if (text === undefined) return Promise.reject(new AtlasFailure(missing(path)));
      return Promise.resolve(bytes(text.trim()));
    },
    ask: () => Promise.reject(new AtlasFailure("a saved page cannot compute; open the atlas with attention-atlas serve")),
  };
}

function missing(path: string): string {
  if (/^(map|points|norms|mean|extra)\//.test(path)) return `this saved page does not carry ${path.split("/")[0] === "norms" ? "vector lengths" : "this map"}; open the atlas with attention-atlas serve`;
  if (/^(compare|reaction|card|heads|alike)\b/.test(path)) return "this saved page does not carry this; open the atlases with attention-atlas serve";
  const what = path.startsWith("vectors") ? "query and key vectors" : "exact weights";
  return `this saved page does not carry ${what}; save it with exact=True (on the command line --exact)`;
}

function bytes(base64: string): ArrayBuffer {
  const text = atob(base64);
  const out = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) out[at] = text.charCodeAt(at);
  return out.buffer;
}
