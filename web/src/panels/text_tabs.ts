// Which tabs has a saved page without maps, scores and pictures? Its script is a quarter shorter, so that lines come sooner.
import type { Tab } from "../desk/tab";
import { lab } from "./lab";
import { text } from "./text";

export const TEXT_TABS: readonly Tab[] = [text, lab];
