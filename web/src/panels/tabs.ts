// The tabs of the page, once: a new one is its line here, shown where it applies.
import type { Component } from "svelte";
import type { Desk } from "../desk/desk.svelte";
import ImagePanel from "./image/ImagePanel.svelte";
import HeadsPanel from "./heads/HeadsPanel.svelte";
import MapPanel from "./map/MapPanel.svelte";
import { PANELS } from "./text/views";
import type { Picks } from "../source/wire";
import Controls from "./text/TextControls.svelte";
import ImageControls from "./image/ImageControls.svelte";
import HeadsControls from "./heads/HeadsControls.svelte";
import MapControls from "./map/MapControls.svelte";

interface Tab {
  name: string;
  about: string;
  applies(desk: Desk): boolean;
  panel(desk: Desk): Component<{ desk: Desk }>;
  controls: Component<{ desk: Desk; close?: () => void }>;
}

export const TABS: Record<Picks["tab"], Tab> = {
  map: {
    name: "Map",
    about: "queries and keys of every head in one picture",
    applies: (desk) => desk.about.maps.length > 0 || desk.about.can_compute,
    panel: () => MapPanel,
    controls: MapControls,
  },
  text: {
    name: "Text",
    about: "who looks at whom in one input",
    applies: () => true,
    panel: (desk) => PANELS[desk.picks.view].panel,
    controls: Controls,
  },
  image: {
    name: "Image",
    about: "where patches look in a picture",
    applies: (desk) => desk.about.pictures,
    panel: () => ImagePanel,
    controls: ImageControls,
  },
  heads: {
    name: "Heads",
    about: "what each head is: kinds, scores, heads alike",
    applies: (desk) => desk.about.can_measure,
    panel: () => HeadsPanel,
    controls: HeadsControls,
  },
};

export const tabsOf = (desk: Desk): [Picks["tab"], Tab][] =>
  (Object.entries(TABS) as [Picks["tab"], Tab][]).filter(([, tab]) => tab.applies(desk));
