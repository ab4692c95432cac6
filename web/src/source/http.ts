// How does a served page get its data? Paths are addresses under api/, beside the page.
import type { Source } from "./source";

/** Milliseconds until the person is told what a request waits for. */
const SLOW = 600;

export function httpSource(base: string): Source {
  // The server takes turns between pages; each draws a name of its own.
  const page = [...crypto.getRandomValues(new Uint8Array(10))]
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("");
  let slow = 0;
  let heard: (slow: boolean) => void = () => {};
  const fetched = async (path: string, how?: RequestInit) => {
    const headers = { ...how?.headers, "X-Atlas-Page": page };
    const answer = await fetch(new URL(`api/${path}`, base), { ...how, headers }).catch(() => {
      throw new Error("the server does not answer; start attention-atlas again and reload the page");
    });
    // An error is a packet too; `decode` throws its sentence.
    return answer.arrayBuffer();
  };
  const watched = async (answer: Promise<ArrayBuffer>): Promise<ArrayBuffer> => {
    let late = false;
    const timer = setTimeout(() => ((late = true), heard(++slow > 0)), SLOW);
    try {
      return await answer;
    } finally {
      clearTimeout(timer);
      if (late) heard(--slow > 0);
    }
  };
  const get = (path: string, signal?: AbortSignal) => fetched(path, { signal });
  const ask = (action: string, body: object) =>
    fetched(action, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  return {
    live: true,
    get: (path, signal) => watched(get(path, signal)),
    ask: (action, body) => watched(ask(action, body)),
    queue: {
      lines: () => get(`queue/${page}`),
      leave: (ticket) => ask("leave", { page, ticket }),
      whenSlow: (hear) => (heard = hear),
    },
  };
}
