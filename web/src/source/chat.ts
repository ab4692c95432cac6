// How does a page inside a chat get its data? By messages to the chat, which asks our server (MCP Apps).
import { AtlasFailure } from "./packet";
import type { Source } from "./source";
import type { Picks } from "./wire";

/** The version of MCP Apps that this page speaks. */
const PROTOCOL = "2026-01-26";
/** The tool of our server that gives packets and does actions. */
const TOOL = "page";
const PATIENCE = 60_000;

interface Message {
  jsonrpc: "2.0";
  id?: number | string;
  method?: string;
  params?: unknown;
  result?: unknown;
  error?: { message?: string };
}

interface ToolResult {
  isError?: boolean;
  content?: { type: string; text?: string }[];
  structuredContent?: { packet?: string; picks?: Partial<Picks> };
}

export interface HostContext {
  theme?: "light" | "dark";
  containerDimensions?: { height?: number; maxHeight?: number };
}

/** The chat that shows this page. */
export class Chat {
  /** Hears the picks of the tool whose answer this page shows. */
  onPicks: (picks: Partial<Picks>) => void = () => {};
  onContext: (context: HostContext) => void = () => {};
  onEnd: () => void = () => {};
  private asked = 0;
  private open = new Map<number, { done(result: unknown): void; failed(error: Error): void }>();

  constructor(
    private own: Window,
    private host: Window,
  ) {
    own.addEventListener("message", this.hear);
  }

  /** Greet the chat; it answers with its theme and the room it gives. */
  async start(name: string, version: string): Promise<HostContext> {
    const greeting = { appInfo: { name, version }, appCapabilities: {}, protocolVersion: PROTOCOL };
    const answer = (await this.ask("ui/initialize", greeting, PATIENCE)) as { hostContext?: HostContext };
    this.tell("ui/notifications/initialized", {});
    return answer?.hostContext ?? {};
  }

  /** Call a tool of our server; a refusal is thrown as its sentence. */
  async call(name: string, args: object, patience: number): Promise<ToolResult> {
    const result = (await this.ask("tools/call", { name, arguments: args }, patience)) as ToolResult;
    if (result?.isError) throw new AtlasFailure(result.content?.[0]?.text ?? "the server refuses this");
    return result;
  }

  /** Tell the chat how high this page is. */
  size(width: number, height: number): void {
    this.tell("ui/notifications/size-changed", { width, height });
  }

  close(): void {
    this.own.removeEventListener("message", this.hear);
  }

  private tell(method: string, params: object): void {
    // The address of a chat is not known, and nothing that is sent is secret.
    this.host.postMessage({ jsonrpc: "2.0", method, params }, "*");
  }

  private ask(method: string, params: object, patience: number): Promise<unknown> {
    const id = ++this.asked;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.open.delete(id);
        reject(new Error("the chat does not answer; ask for the picture again"));
      }, patience);
      const ended = <T>(then: (value: T) => void) => {
        return (value: T) => {
          clearTimeout(timer);
          then(value);
        };
      };
      this.open.set(id, { done: ended(resolve), failed: ended(reject) });
      this.host.postMessage({ jsonrpc: "2.0", id, method, params }, "*");
    });
  }

  private hear = (event: MessageEvent): void => {
    // Another frame could send messages too; only those of the chat count.
    if (event.source !== this.host) return;
    const message = event.data as Message | null;
    if (typeof message !== "object" || message?.jsonrpc !== "2.0") return;
    if (message.method !== undefined) this.heard(message);
    else this.answered(message);
  };

  private answered({ id, result, error }: Message): void {
    const waiting = this.open.get(id as number);
    this.open.delete(id as number);
    if (error) waiting?.failed(new AtlasFailure(error.message ?? "the chat refuses this"));
    else waiting?.done(result);
  }

  private heard({ id, method, params }: Message): void {
    if (method === "ui/notifications/tool-result") {
      const picks = (params as ToolResult | null)?.structuredContent?.picks;
      if (picks) this.onPicks(picks);
    } else if (method === "ui/notifications/host-context-changed") this.onContext((params ?? {}) as HostContext);
    else if (method === "ui/resource-teardown") this.onEnd();
    // Every request gets an answer, also one that this page does not know.
    if (id !== undefined) this.host.postMessage({ jsonrpc: "2.0", id, result: {} }, "*");
  }
}

export function chatSource(chat: Chat): Source {
  const packet = async (args: object, patience: number): Promise<ArrayBuffer> => {
    const { structuredContent } = await chat.call(TOOL, args, patience);
    if (typeof structuredContent?.packet !== "string") throw new AtlasFailure("the chat passed on no data");
    return Uint8Array.from(atob(structuredContent.packet), (letter) => letter.charCodeAt(0)).buffer;
  };
  return {
    live: true,
    get: (path) => packet({ path }, PATIENCE),
    // An action may run the model, which takes longer.
    ask: (action, body) => packet({ path: action, body }, 5 * PATIENCE),
  };
}
