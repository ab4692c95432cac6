// Does the page inside a chat speak as MCP Apps says, and listen to the chat alone?
import { describe, expect, it } from "vitest";
import { Chat, chatSource } from "../src/source/chat";

interface Sent {
  id?: number;
  method?: string;
  params?: unknown;
  result?: unknown;
}

function chatting() {
  const sent: Sent[] = [];
  const host = { postMessage: (message: Sent) => void sent.push(message) } as unknown as Window;
  let hear: (event: { source: unknown; data: unknown }) => void = () => {};
  const own = {
    addEventListener: (_name: string, heard: typeof hear) => (hear = heard),
    removeEventListener: () => (hear = () => {}),
  } as unknown as Window;
  const chat = new Chat(own, host);
  return { chat, sent, say: (data: object, source: unknown = host) => hear({ source, data }) };
}

describe("the page inside a chat", () => {
  it("greets the chat first and says when it is ready", async () => {
    const { chat, sent, say } = chatting();
    const started = chat.start("atlas", "1");
    expect(sent[0]?.method).toBe("ui/initialize");
    expect(sent[0]?.params).toMatchObject({ protocolVersion: "2026-01-26", appInfo: { name: "atlas" } });
    say({ jsonrpc: "2.0", id: sent[0]?.id, result: { hostContext: { theme: "dark" } } });
    expect(await started).toEqual({ theme: "dark" });
    expect(sent[1]?.method).toBe("ui/notifications/initialized");
  });

  it("asks for a packet by the tool of the page and reads its bytes", async () => {
    const { chat, sent, say } = chatting();
    const answer = chatSource(chat).get("about");
    expect(sent[0]?.params).toEqual({ name: "page", arguments: { path: "about" } });
    say({ jsonrpc: "2.0", id: sent[0]?.id, result: { structuredContent: { packet: "AQL/" } } });
    expect([...new Uint8Array(await answer)]).toEqual([1, 2, 255]);
  });

  it("throws the sentence of a refusal", async () => {
    const { chat, sent, say } = chatting();
    const answer = chatSource(chat).ask("edit", {});
    say({ jsonrpc: "2.0", id: sent[0]?.id, result: { isError: true, content: [{ type: "text", text: "no model" }] } });
    await expect(answer).rejects.toThrow("no model");
  });

  it("hears the chat alone, and answers every request of it", () => {
    const { chat, sent, say } = chatting();
    const heard: object[] = [];
    chat.onPicks = (picks) => heard.push(picks);
    const result = { jsonrpc: "2.0", method: "ui/notifications/tool-result" };
    say({ ...result, params: { structuredContent: { picks: { input: 3 } } } }, "another frame");
    expect(heard).toEqual([]);
    say({ ...result, params: { structuredContent: { picks: { input: 3 } } } });
    expect(heard).toEqual([{ input: 3 }]);
    say({ jsonrpc: "2.0", id: 7, method: "ping" });
    expect(sent).toEqual([{ jsonrpc: "2.0", id: 7, result: {} }]);
  });
});
