// The served page: paths are addresses under api/, beside the page itself.
import type { Source } from "./source";

export function httpSource(base: string): Source {
  return {
    live: true,
    async get(path) {
      const answer = await fetch(new URL(`api/${path}`, base)).catch(() => {
        throw new Error("the server does not answer; is attention-atlas still running?");
      });
      // A refusal is a packet too, and its sentence is shown by whoever asked.
      return answer.arrayBuffer();
    },
  };
}
