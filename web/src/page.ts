// Host: the served page.
import "./looks/all.css";
import { mountAtlas } from "./mount";
import { TABS } from "./panels/tabs";
import { httpSource } from "./source/http";

const early = window.atlasEarly ?? undefined;
window.atlasEarly = null;
const element = document.getElementById("atlas");
// `mountAtlas` has already shown the error.
if (element) mountAtlas(element, httpSource(document.baseURI, early), TABS, { chrome: "page" }).catch(() => {});
