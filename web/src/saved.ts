// How does a file that contains its data open itself?
import "./looks/all.css";
import type { Tab } from "./desk/tab";
import { mountAtlas, type Options } from "./mount";
import { storedSource } from "./source/stored";

export function openSaved(tabs: readonly Tab[]): void {
  const element = document.getElementById("atlas");
  const stored = document.getElementById("atlas-options")?.textContent;
  const options = (stored ? JSON.parse(stored) : {}) as Options;
  if (element) mountAtlas(element, storedSource(document), tabs, { chrome: "file", ...options }).catch(() => {});
}
