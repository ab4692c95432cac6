// How does a served page get its data? Paths are addresses under api/, beside the page.
import type { Early } from "./early";
import type { Source } from "./source";

/** Milliseconds until the person is told what a request waits for. */
const SLOW = 600;

/** Draw a name: the server takes turns between pages, so each has its own. */
export const pageName = (): string =>
  [...crypto.getRandomValues(new Uint8Array(10))].map((byte) => byte.toString(16).padStart(2, "0")).join("");

/** Get the bytes of a path under api/; `page` is the name of the page that asks. */
export async function fetched(base: string, page: string, path: string, how?: RequestInit): Promise<ArrayBuffer> {
  const headers = { ...how?.headers, "X-Atlas-Page": page };
  const answer = await fetch(new URL(`api/${path}`, base), { ...how, headers }).catch(() => {
    throw new Error("the server does not answer; start attention-atlas again and reload the page");
  });
  // An error is a packet too; `decode` throws its sentence.
  return answer.arrayBuffer();
}

/** `early`: requests that were sent before the page's script ran. */
export function httpSource(base: string, early?: Early): Source {
  const page = early?.page ?? pageName();
  let slow = 0;
  let heard: (slow: boolean) => void = () => {};
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
  const get = (path: string, signal?: AbortSignal) => {
    const sent = early?.answers.get(path);
    early?.answers.delete(path);
    return sent ?? fetched(base, page, path, { signal });
  };
  const ask = (action: string, body: object) =>
    fetched(base, page, action, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
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
