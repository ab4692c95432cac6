// How is the atlas put into an element? The four hosts differ only in their source.
import { mount, unmount } from "svelte";
import { Desk, type Chrome } from "./desk/desk.svelte";
import type { Tab } from "./desk/tab";
import { sentence } from "./desk/pane.svelte";
import { fromHash, type Picks } from "./desk/picks";
import App from "./frame/App.svelte";
import { decode } from "./source/packet";
import type { Source } from "./source/source";
import type { About } from "./source/wire";

export interface Options {
  tab?: Picks["tab"];
  picks?: Partial<Picks>;
  chrome?: Chrome;
  onPicks?: (picks: Picks) => void;
}

export interface Mounted {
  setPicks(picks: Partial<Picks>): void;
  close(): void;
}

export async function mountAtlas(
  element: HTMLElement,
  source: Source,
  tabs: readonly Tab[],
  options: Options = {},
): Promise<Mounted> {
  const chrome = options.chrome ?? "page";
  let about: About;
  try {
    about = decode<About>(await source.get("about"));
    if (about.towers.length === 0)
      throw new Error("this atlas has no attention layers; capture a model that has attention");
    if (about.inputs.length === 0)
      throw new Error("this atlas has no inputs yet; add some with attention-atlas capture");
  } catch (error) {
    refuse(element, sentence(error), chrome);
    throw error;
  }
  const linked = chrome === "cell" ? {} : fromHash(location.hash);
  const fresh = Object.keys({ ...options.picks, ...linked }).length === 0;
  const desk = new Desk(source, about, chrome, { tab: options.tab, ...options.picks, ...linked }, tabs, fresh);
  element.replaceChildren();
  const app = mount(App, { target: element, props: { desk, onPicks: options.onPicks } });
  return {
    setPicks: (picks) => desk.setPicks(picks),
    close: () => void unmount(app),
  };
}

function refuse(element: HTMLElement, words: string, chrome: Chrome): void {
  const line = document.createElement("p");
  line.className = "aa-sorry";
  line.setAttribute("role", "alert");
  line.textContent = words;
  element.replaceChildren(line);
  if (chrome === "cell") return;
  document.documentElement.dataset["state"] = "error";
  document.documentElement.dataset["error"] = words;
}
