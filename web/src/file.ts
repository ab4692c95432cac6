// Host: one HTML file that contains its data.
import "./looks/all.css";
import { mountAtlas, type Options } from "./mount";
import { storedSource } from "./source/stored";

const element = document.getElementById("atlas");
const stored = document.getElementById("atlas-options")?.textContent;
const options = (stored ? JSON.parse(stored) : {}) as Options;
if (element) mountAtlas(element, storedSource(document), { chrome: "file", ...options }).catch(() => {});
