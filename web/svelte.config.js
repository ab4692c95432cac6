import { vitePreprocess } from "@sveltejs/vite-plugin-svelte";

export default {
  preprocess: vitePreprocess(),
  compilerOptions: {
    runes: true,
    // A component keeps one desk for its whole life, so reading it once is what is meant.
    warningFilter: (warning) => warning.code !== "state_referenced_locally",
  },
};
