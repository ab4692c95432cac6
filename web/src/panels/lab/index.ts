// The Lab tab: change attention, and see what the model then says and where it then looks.
import type { Tab } from "../../desk/tab";
import { CHOICES } from "../../source/wire";
import { HEAD_MARK_KEYS } from "../parts/keys";
import LabPanel from "./LabPanel.svelte";
import { CLOSE_UPS, openCloseUp } from "./open";

export const lab: Tab = {
  name: "lab",
  title: "Lab",
  about: "change attention and see what happens",
  inCell: (desk) => desk.about.can_edit,
  panel: () => LabPanel,
  hints: [
    { lead: "Change something:", text: "right-click a head, token or line in any view, or point at it and press e." },
    {
      lead: "Compare:",
      text: "bars show what the model expects before and after; the squares show which heads look elsewhere now.",
    },
    { lead: "Nothing is lost:", text: "switch an edit off, undo it (u), or copy the link: it brings all edits back." },
  ],
  status: (desk) => (desk.lab.receipt ? [{ name: "edit-receipt", text: desk.lab.receipt.line }] : []),
  ways: [{ key: "l", shown: "l", does: "Lab tab", act: (desk) => desk.setTab("lab") }],
  keys: HEAD_MARK_KEYS,
  commands: (desk) =>
    desk.about.can_edit
      ? [
          {
            group: "Edit",
            text: `take ${desk.focus} out`,
            act: () => desk.lab.toggle({ edit: "ablate", heads: [desk.focus], by: "zero" }),
          },
          { group: "Edit", text: "remove all edits", act: () => desk.lab.clear() },
          ...CLOSE_UPS.map(({ view, text }) => ({
            group: "Edit",
            text: `difference in ${text}`,
            act: () => openCloseUp(desk, view),
          })),
          ...CHOICES.labView.map((view) => ({
            group: "Edits",
            text: `show ${view}`,
            act: () => (desk.picks.labView = view),
          })),
        ]
      : [],
  into: (desk) => openCloseUp(desk, "head"),
  needs: () => ["edits"],
  undo: ["edits"],
};
