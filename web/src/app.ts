// Host: a chat that shows this page beside the answer of a tool (MCP Apps).
import "./looks/all.css";
import { mountAtlas, type Mounted } from "./mount";
import { TABS } from "./panels/tabs";
import { Chat, chatSource, type HostContext } from "./source/chat";
import type { Picks } from "./source/wire";

/** Pixels of height that the page asks for, where the chat lets it choose. */
const HEIGHT = 640;

async function start(element: HTMLElement): Promise<void> {
  const chat = new Chat(window, window.parent);
  let picks: Partial<Picks> = {};
  const shown: { atlas?: Mounted } = {}; // messages come before and after it is mounted
  chat.onPicks = (chosen) => {
    // The theme is the chat's own, not that of the picture.
    const { theme: _theme, ...rest } = chosen;
    picks = { ...picks, ...rest };
    shown.atlas?.setPicks(picks);
  };
  const themed = ({ theme }: HostContext) => {
    if (theme) picks = { ...picks, theme };
    if (theme) shown.atlas?.setPicks({ theme });
  };
  chat.onContext = themed;
  chat.onEnd = () => {
    chat.close();
    shown.atlas?.close();
  };
  const context = await chat.start("attention-atlas", "1");
  themed(context);
  const height = context.containerDimensions?.height;
  if (height === undefined) {
    const high = Math.min(HEIGHT, context.containerDimensions?.maxHeight ?? HEIGHT);
    document.documentElement.style.height = `${high}px`;
    chat.size(document.documentElement.clientWidth, high);
  }
  shown.atlas = await mountAtlas(element, chatSource(chat), TABS, { chrome: "file", picks });
  shown.atlas.setPicks(picks);
}

const element = document.getElementById("atlas");
if (element) start(element).catch(() => {});
