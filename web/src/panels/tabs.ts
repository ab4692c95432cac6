// Which tabs are there, in the order of the bar? A new tab is one folder and one line here.
import type { Tab } from "../desk/tab";
import { heads } from "./heads";
import { image } from "./image";
import { lab } from "./lab";
import { map } from "./map";
import { text } from "./text";

export const TABS: readonly Tab[] = [map, text, image, heads, lab];
