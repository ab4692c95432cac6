// The Image tab: where patches look in a picture, one head at a time.
import type { Tab } from "../../desk/tab";
import { TOKEN_KEYS } from "../../desk/keys";
import { CHOICES } from "../../source/wire";
import ImageBar from "./ImageBar.svelte";
import ImageControls from "./ImageControls.svelte";
import ImageInspector from "./ImageInspector.svelte";
import ImagePanel from "./ImagePanel.svelte";

export const image: Tab = {
  name: "image",
  title: "Image",
  about: "where patches look in a picture",
  applies: (desk) => desk.about.pictures,
  opens: (about) => about.pictures,
  inCell: (desk) => desk.about.pictures,
  closeUp: () => true,
  panel: () => ImagePanel,
  controls: ImageControls,
  inspector: ImageInspector,
  cellBar: ImageBar,
  hints: [
    { lead: "Point at a patch", text: "to see what it looks at. Click it to keep that." },
    { lead: "Arrows", text: "go from each patch to what it looks at most: ○ is itself, □ a token without a place." },
    { lead: "Keys:", text: "←→ other heads, ↑↓ other layers, k which patches look at this patch." },
  ],
  tokenName: (desk, token) => `, ${desk.image.nameOf(token)}`,
  keys: [
    {
      key: "k",
      shown: "k",
      does: "on a picture: what the patch looks at, or what looks at it",
      act: (desk) => desk.image.swap(),
    },
    { shown: "Shift ←→↑↓", does: "on a picture: neighbouring patch" },
    ...TOKEN_KEYS,
  ],
  commands: (desk) => [
    ...CHOICES.combine.map((combine) => ({
      group: "Picture",
      text: `attention of ${combine === "head" ? "one head" : combine}`,
      act: () => (desk.setTab("image"), (desk.picks.combine = combine)),
    })),
    {
      group: "Picture",
      text: "arrows to what each patch looks at most, on or off",
      act: () => (desk.setTab("image"), (desk.picks.arrows = !desk.picks.arrows)),
    },
    {
      group: "Picture",
      text: "all flows, on or off",
      act: () => (desk.setTab("image"), (desk.picks.flows = !desk.picks.flows)),
    },
  ],
  ways: [{ key: "i", shown: "i", does: "Image tab", act: (desk) => desk.setTab("image") }],
  needs: () => ["attention", "pictures"],
  alone: (picks) => picks.heads[0],
  undo: ["hidden", "combine", "overlay", "arrows", "flows", "flowsFrom"],
  steps: ["combine", "picture"],
};
