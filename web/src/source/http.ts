// The served page: paths are addresses under api/, beside the page itself.
import type { Source } from "./source";

export function httpSource(page: Location | URL): Source {
  const token = new URLSearchParams(page.search).get("token");
  return {
    live: true,
    async get(path) {
      const address = new URL(`api/${path}`, page.href);
      if (token) address.searchParams.set("token", token);
      const answer = await fetch(address).catch(() => {
        throw new Error("the server does not answer; is attention-atlas still running?");
      });
      // A refusal is a packet too, and its sentence is shown by whoever asked.
      return answer.arrayBuffer();
    },
  };
}
