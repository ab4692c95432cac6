// The notebook: questions and answers are messages to the Python object behind the cell.
import type { Source } from "./source";

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
  // Two cells may show one model, so every question carries a name of its own.
  const own = Math.random().toString(36).slice(2);
  const open = new Map<string, (bytes: ArrayBuffer) => void>();
  let asked = 0;
  const hear = (message: { kind?: string; id?: string }, buffers: (DataView | ArrayBuffer)[]) => {
    if (message.kind !== "answer" || message.id === undefined) return;
    open.get(message.id)?.(plain(buffers[0]));
    open.delete(message.id);
  };
  model.on("msg:custom", hear as never);
  const send = (message: object, patience: number): Promise<ArrayBuffer> => {
    const id = `${own}-${asked++}`;
    return new Promise((done, failed) => {
      const timer = setTimeout(() => {
        open.delete(id);
        failed(new Error("the notebook's kernel does not answer; run the cell again"));
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
    // A action may run the model.
    ask: (action, body) => send({ kind: "do", path: action, body }, 5 * PATIENCE),
    close: () => model.off("msg:custom", hear as never),
  };
}

function plain(buffer: DataView | ArrayBuffer): ArrayBuffer {
  if (buffer instanceof ArrayBuffer) return buffer;
  return buffer.buffer.slice(buffer.byteOffset, buffer.byteOffset + buffer.byteLength) as ArrayBuffer;
}
