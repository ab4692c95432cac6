// Host: one HTML file that contains its data, and the code that shows them.
import "./looks/all.css";
import { mountAtlas, type Options } from "./mount";
import { TABS } from "./panels/tabs";
import { TEXT_TABS } from "./panels/text_tabs";
import { storedSource } from "./source/stored";

const element = document.getElementById("atlas");
const stored = document.getElementById("atlas-options")?.textContent;
const options = (stored ? JSON.parse(stored) : {}) as Options;
const tabs = document.querySelector("script[data-part=more]") ? TABS : TEXT_TABS;
if (element) mountAtlas(element, storedSource(document), tabs, { chrome: "file", ...options }).catch(() => {});
