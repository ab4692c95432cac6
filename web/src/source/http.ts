// The served page: paths are addresses under api/, beside the page itself.
import type { Source } from "./source";

export function httpSource(base: string): Source {
  const fetched = async (path: string, how?: RequestInit) => {
    const answer = await fetch(new URL(`api/${path}`, base), how).catch(() => {
      throw new Error("the server does not answer; is attention-atlas still running?");
    });
    // A refusal is a packet too, and its sentence is shown by whoever asked.
    return answer.arrayBuffer();
  };
  return {
    live: true,
    get: (path) => fetched(path),
    ask: (action, body) =>
      fetched(action, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) }),
  };
}
