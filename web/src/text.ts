// Host: one HTML file that contains attention alone, without maps, scores and pictures.
import { TEXT_TABS } from "./panels/text_tabs";
import { openSaved } from "./saved";

openSaved(TEXT_TABS);
