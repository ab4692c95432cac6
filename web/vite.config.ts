// One config, five ways out: the served page (and what it asks for early), the notebook widget, the templates of saved
// files (all tabs, or attention alone), the page in a chat.
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import wabt from "wabt";
import { defineConfig, type Plugin, type UserConfig } from "vite";

const here = dirname(fileURLToPath(import.meta.url));
const out = resolve(here, "../src/attention_atlas/page/static");
const entries = {
  page: "src/page.ts",
  early: "src/early.ts",
  widget: "src/notebook.ts",
  file: "src/file.ts",
  text: "src/text.ts",
  app: "src/app.ts",
};

const isEntry = (mode: string): mode is keyof typeof entries => mode in entries;

/** The page's HTML is a shell; in a file, saved or for a chat, everything that was built is put inside it. */
function shell(mode: "page" | "file" | "text" | "app"): Plugin {
  return {
    name: "atlas-shell",
    enforce: "post",
    generateBundle(_options, bundle) {
      const html = readFileSync(resolve(here, mode === "page" ? "src/page.html" : "src/file.html"), "utf8");
      if (mode === "page") {
        this.emitFile({ type: "asset", fileName: "page.html", source: html });
        return;
      }
      const parts = { js: "", css: "" };
      for (const [name, piece] of Object.entries(bundle)) {
        if (piece.type === "chunk") parts.js += piece.code;
        else if (name.endsWith(".css")) parts.css += String(piece.source);
        delete bundle[name];
      }
      // A function as replacement: "$&" in the code must stay as it is.
      const source = html
        .replace("/*ATLAS-CSS*/", () => parts.css)
        .replace("/*ATLAS-JS*/", () => parts.js.replaceAll("</script", "<\\/script"));
      this.emitFile({ type: "asset", fileName: `${mode}.html`, source });
    },
  };
}

/** Svelte makes an Error as it starts, and for its stack V8 reads the whole bundle a second time: 40 ms for nothing. */
function noErrorAtStart(): Plugin {
  return {
    name: "atlas-no-error-at-start",
    transform(code, id) {
      if (!id.endsWith("svelte/src/internal/client/constants.js")) return null;
      const plain = code.replace("new (class StaleReactionError extends Error {", "new (class StaleReactionError {");
      if (plain === code) this.error("Svelte no longer makes an Error here; remove this");
      return { code: plain, map: null };
    },
  };
}

/** WebAssembly text, assembled and as base64. */
function wat(): Plugin {
  return {
    name: "atlas-wat",
    async transform(code, id) {
      if (!id.endsWith(".wat")) return null;
      const module = (await wabt()).parseWat(id, code, { simd: true });
      const bytes = Buffer.from(module.toBinary({}).buffer);
      return { code: `export default ${JSON.stringify(bytes.toString("base64"))};`, map: null, moduleType: "js" };
    },
  };
}

export default defineConfig(({ mode }): UserConfig => {
  const plugins = [svelte(), noErrorAtStart(), wat()];
  if (!isEntry(mode)) {
    return { plugins, test: { include: ["test/**/*.test.ts"] } } as UserConfig;
  }
  return {
    plugins: mode === "widget" || mode === "early" ? plugins : [...plugins, shell(mode)],
    build: {
      outDir: out,
      emptyOutDir: mode === "page",
      target: "es2022",
      cssCodeSplit: false,
      modulePreload: false,
      rolldownOptions: {
        input: resolve(here, entries[mode]),
        preserveEntrySignatures: mode === "widget" ? "strict" : false,
        output: {
          format: mode === "page" || mode === "widget" ? "es" : "iife",
          entryFileNames: `${mode}.js`,
          assetFileNames: `${mode}[extname]`,
          codeSplitting: false,
        },
      },
    },
  } as UserConfig;
});
