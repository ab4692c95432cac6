// Host: one HTML file that contains its data.
import { TABS } from "./panels/tabs";
import { openSaved } from "./saved";

openSaved(TABS);
