"""How is the page shown in a notebook cell?

The cell asks for packets by message and sends back what the person picks as `picks`.
"""

from typing import Any

import anywidget
import traitlets

from attention_atlas.page.answers.subject import Subject
from attention_atlas.page.hosts.static_files import static
from attention_atlas.page.live.answers import make_answers
from attention_atlas.page.live.model import LiveModel
from attention_atlas.page.wire.picks import read_picks


class AtlasWidget(anywidget.AnyWidget):
    """The notebook widget of one subject, made by `aa.head_view` and the other views."""

    picks = traitlets.Dict().tag(sync=True)
    options = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        subject: Subject,
        picks: dict[str, Any],
        options: dict[str, Any],
        model: LiveModel | None = None,
    ):
        (self._answers,) = make_answers([subject], [model])
        super().__init__(_esm=static("widget.js").read_text("utf-8"), picks=picks, options=options)
        self.on_msg(self._answer)

    @traitlets.validate("picks")
    def _read_picks(self, proposal: Any) -> dict[str, Any]:
        """Check the picks from the page or from Python and return all picks."""
        return read_picks(proposal["value"])

    def _answer(self, _: Any, message: Any, buffers: Any) -> None:
        if not isinstance(message, dict):
            return
        path = str(message.get("path"))
        if message.get("kind") == "get":
            packet, _answered = self._answers.packet(path)
        elif message.get("kind") == "do":
            packet, _done = self._answers.perform(path, message.get("body"))
        else:
            return
        self.send({"kind": "answer", "id": message.get("id")}, [packet])
