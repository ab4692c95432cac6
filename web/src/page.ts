// Host: the served page.
import "./looks/all.css";
import { mountAtlas } from "./mount";
import { httpSource } from "./source/http";

const element = document.getElementById("atlas");
// A failure is already on screen; nothing is left to do with it here.
if (element) mountAtlas(element, httpSource(document.baseURI), { chrome: "page" }).catch(() => {});
