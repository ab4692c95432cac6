// How does a notebook cell get its data? By messages to the Python object of the cell.
import type { Source } from "./source";
import { MOST_WAITING } from "./wire";

/** The part of anywidget's model that is used here. */
export interface Model {
  get(name: string): unknown;
  set(name: string, value: unknown): void;
  save_changes(): void;
  send(message: unknown): void;
  on(event: string, heard: (...args: never[]) => void): void;
  off(event: string, heard: (...args: never[]) => void): void;
}

const PATIENCE = 60_000;

export function widgetSource(model: Model): Source & { close(): void } {
  // Two cells may share one model, so the ids of messages start with a name of this cell.
  const cellName = Math.random().toString(36).slice(2);
  const open = new Map<string, (bytes: ArrayBuffer) => void>();
  let asked = 0;
  let waiting = 0;
  const hear = (message: { kind?: string; id?: string }, buffers: (DataView | ArrayBuffer)[]) => {
    if (message.kind !== "answer" || message.id === undefined) return;
    open.get(message.id)?.(plain(buffers[0]));
    open.delete(message.id);
  };
  model.on("msg:custom", hear as never);
  const send = (message: object, patience: number): Promise<ArrayBuffer> => {
    const id = `${cellName}-${asked++}`;
    return new Promise((done, failed) => {
      const timer = setTimeout(() => {
        open.delete(id);
        failed(new Error("the kernel of the notebook does not answer; run the cell again"));
      }, patience);
      open.set(id, (bytes) => {
        clearTimeout(timer);
        done(bytes);
      });
      model.send({ ...message, id });
    });
  };
  return {
    live: true,
    get: (path) => send({ kind: "get", path }, PATIENCE),
    // An action may run the model, which takes longer.
    ask: async (action, body) => {
      // The kernel does one thing at a time and has no queue of ours, so the limit is kept here.
      if (waiting >= MOST_WAITING)
        throw new Error(`${waiting} pieces of your work wait already; wait for them, then try again`);
      waiting += 1;
      try {
        return await send({ kind: "do", path: action, body }, 5 * PATIENCE);
      } finally {
        waiting -= 1;
      }
    },
    close: () => model.off("msg:custom", hear as never),
  };
}

function plain(buffer: DataView | ArrayBuffer): ArrayBuffer {
  if (buffer instanceof ArrayBuffer) return buffer;
  return buffer.buffer.slice(buffer.byteOffset, buffer.byteOffset + buffer.byteLength) as ArrayBuffer;
}
