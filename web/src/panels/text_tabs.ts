// Which tabs has a saved page without maps, scores and pictures? It is written without the code of the others.
import type { Tab } from "../desk/tab";
import { lab } from "./lab";
import { text } from "./text";

export const TEXT_TABS: readonly Tab[] = [text, lab];
