// How does a served page get its data? Paths are addresses under api/, beside the page.
import type { Source } from "./source";

export function httpSource(base: string): Source {
  const fetched = async (path: string, how?: RequestInit) => {
    const answer = await fetch(new URL(`api/${path}`, base), how).catch(() => {
      throw new Error("the server does not answer; start attention-atlas again and reload the page");
    });
    // An error is a packet too; `decode` throws its sentence.
    return answer.arrayBuffer();
  };
  return {
    live: true,
    get: (path, signal) => fetched(path, { signal }),
    ask: (action, body) =>
      fetched(action, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) }),
  };
}
