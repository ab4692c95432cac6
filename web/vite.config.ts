// One config, four ways out: the served page (and what it asks for early), the notebook widget, the template of saved
// files, the page in a chat.
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import wabt from "wabt";
import { defineConfig, normalizePath, type Plugin, type UserConfig } from "vite";

const here = dirname(fileURLToPath(import.meta.url));
const out = resolve(here, "../src/attention_atlas/page/static");
const entries = {
  page: "src/page.ts",
  early: "src/early.ts",
  widget: "src/notebook.ts",
  file: "src/file.ts",
  app: "src/app.ts",
};

const isEntry = (mode: string): mode is keyof typeof entries => mode in entries;

const bar = (name: string) => `frame/${name}.svelte`;
const ofText = (name: string) => `panels/text/Text${name}.svelte`;
/**
 * Components that are not part of a first picture of lines, in the order in which they may be needed. In a file each of
 * these groups is a script of its own, which the browser does not read before one of its components is shown: reading
 * all code takes longer than drawing the lines. A file without maps, scores and pictures does not hold the last one.
 */
const LATER: Record<string, string[]> = {
  bars: [
    ...["Announcer", "CellBar", "Controls", "EditMenu", "Inspector", "KeyList", "Palette", "StatusBar", "TopBar"].map(
      bar,
    ),
    ...["Bar", "Controls", "Inspector", "Row"].map(ofText),
  ],
  views: ["panels/lab", "panels/logit", "panels/neuron", "panels/read", "panels/tiles", "panels/heat/HeatPanel.svelte"],
  more: ["panels/compare", "panels/heads", "panels/image", "panels/map"],
};
const GROUP = "\0atlas-later-";
const PRELOAD = "vite/preload-helper.js";

/** Puts these groups into chunks. What imports a component gets a function that calls it there (`later.js`). */
function later(): Plugin {
  const inside = (place: string) =>
    place.endsWith(".svelte") ? [place] : readdirSync(resolve(here, "src", place)).map((name) => `${place}/${name}`);
  const groups: Record<string, string[]> = {};
  for (const [name, places] of Object.entries(LATER)) {
    const homes = places.flatMap(inside).filter((home) => home.endsWith(".svelte"));
    groups[name] = homes.map((home) => normalizePath(resolve(here, "src", home)));
  }
  const groupOf = (id: string) => Object.keys(groups).find((name) => groups[name].includes(id));
  return {
    name: "atlas-later",
    enforce: "pre",
    async resolveId(source, importer) {
      if (source.startsWith(GROUP) || source.endsWith(PRELOAD)) return source;
      if (importer?.startsWith(GROUP) || !source.endsWith(".svelte")) return null;
      const found = await this.resolve(source, importer, { skipSelf: true });
      const group = found && groupOf(found.id);
      return group ? `${GROUP}${group}:${groups[group].indexOf(found.id)}` : found;
    },
    load(id) {
      // This import is never run, and so never helped by a preload: it only makes the builder set the group apart.
      if (id.endsWith(PRELOAD)) return "export const __vitePreload = (load) => load();";
      if (!id.startsWith(GROUP)) return null;
      const [group, at] = id.slice(GROUP.length).split(":");
      if (at === undefined)
        return groups[group].map((home, at) => `export { default as c${at} } from ${JSON.stringify(home)};`).join("\n");
      return `if (window.atlasLater === 0) import(${JSON.stringify(GROUP + group)});
        export default (...given) => window.atlasLater("${group}").c${at}(...given);`;
    },
  };
}

/** The page's HTML is a shell; in a file, saved or for a chat, everything that was built is put inside it. */
function shell(mode: "page" | "file" | "app"): Plugin {
  return {
    name: "atlas-shell",
    enforce: "post",
    generateBundle(_options, bundle) {
      const read = (name: string) => readFileSync(resolve(here, "src", name), "utf8");
      if (mode === "page") {
        this.emitFile({ type: "asset", fileName: "page.html", source: read("page.html") });
        return;
      }
      const parts = { first: "", later: "", css: "" };
      const closed = (code: string) => code.replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--");
      for (const [name, piece] of Object.entries(bundle)) {
        if (piece.type === "chunk" && piece.isEntry) parts.first += piece.code;
        else if (piece.type === "chunk")
          parts.later += `<script type="text/plain" data-part="${name}">${closed(piece.code)}</script>\n`;
        else if (name.endsWith(".css")) parts.css += String(piece.source);
        delete bundle[name];
      }
      // A function as replacement: "$&" in the code must stay as it is.
      for (const group of Object.keys(LATER))
        if (!parts.later.includes(`data-part="${group}"`)) this.error(`the components of "${group}" are not set apart`);
      const script = read("later.js")
        .replace("/*ATLAS-NAME*/", `${mode}.js`)
        .replace("/*ATLAS-FIRST*/", () => parts.first);
      const source = read("file.html")
        .replace("/*ATLAS-CSS*/", () => parts.css)
        .replace("<!--ATLAS-LATER-->", () => parts.later)
        .replace("/*ATLAS-JS*/", () => closed(script));
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
  const file = mode === "file" || mode === "app";
  return {
    plugins: [...(file ? [later()] : []), ...plugins, ...(file || mode === "page" ? [shell(mode)] : [])],
    build: {
      outDir: out,
      emptyOutDir: mode === "page",
      target: "es2022",
      cssCodeSplit: false,
      modulePreload: false,
      chunkSizeWarningLimit: 1000,
      rolldownOptions: {
        input: resolve(here, entries[mode]),
        preserveEntrySignatures: mode === "widget" ? "strict" : false,
        output: {
          format: file ? "cjs" : mode === "early" ? "iife" : "es",
          entryFileNames: `${mode}.js`,
          chunkFileNames: ({ facadeModuleId: id }) => (id?.startsWith(GROUP) ? id.slice(GROUP.length) : "[name]"),
          assetFileNames: `${mode}[extname]`,
          codeSplitting: file,
        },
      },
    },
  } as UserConfig;
});
