"""How does the Lab answer? The live model reads an input plainly and with edits.

The plain run of an input is kept, so that the next edit of the same input runs the edited part
alone. The model does one thing at a time; other packets do not wait for it.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from attention_atlas.names.errors import AtlasError, InputError, ModelError, PickError
from attention_atlas.names.out_of_memory import is_out_of_memory
from attention_atlas.page.answers.grown import Grown
from attention_atlas.page.live.edit_receipt import ReceiptRun
from attention_atlas.page.live.in_words import in_words
from attention_atlas.page.live.label import known_kind, label_verdict
from attention_atlas.page.live.model import LiveModel
from attention_atlas.page.wire import lab as wire
from attention_atlas.page.wire.constants import MOST_EDITS, MOST_GENERATED
from attention_atlas.store.manifest import CACHE, GIVEN

if TYPE_CHECKING:
    from attention_atlas.models.load import Loaded
    from attention_atlas.page.live.lab_input import LabInput

REMEMBERED = 4  # inputs whose plain run is kept
_ATTACH = (
    "attach the one that was captured: attention-atlas serve x.atlas --model MODEL, or in Python "
    "model=… of the view"
)
NO_MODEL = f"there is no model to edit; {_ATTACH}"
NO_TESTER = f"there is no model to test labels with; {_ATTACH}"
_LONGEST = 500  # characters of a sentence; it may repeat what was sent
_log = logging.getLogger("attention_atlas")


class Lab:
    """The edits of one atlas by its live model; `refusal` says why there are none."""

    def __init__(self, atlas: Grown, model: LiveModel | None, refusal: str = ""):
        self.atlas, self.model, self._refusal = atlas, model, refusal
        self._inputs: dict[int, LabInput] = {}
        self._receipt = None if model is None else ReceiptRun(atlas, model)

    def offers(self) -> dict[str, Any]:
        """Return the fields of `about` that say whether inputs can be edited."""
        why = self._why_not()
        predicts = "" if why or self.model is None else self.model.predicts
        return {"can_edit": not why, "no_edits": why, "predicts": predicts}

    def receipt(self) -> wire.EditProofs:
        """Return the edit receipt of the model as far as it is made; the first call starts it."""
        why = self._why_not()
        if why or self._receipt is None:
            raise InputError(why)
        return self._receipt.proofs()

    def edit(self, asked: wire.EditInput) -> wire.EditedInput:
        """Run an input with edits; return what changes, and the number of the edited input."""
        self._refuse(asked)
        assert self.model is not None
        from attention_atlas.models.stoppable import stoppable

        with (
            self.model.held() as loaded,
            self._in_words("run with these edits"),
            stoppable(loaded.model),
        ):
            return self._input(asked.input, loaded).edit(asked)

    def test_label(self, asked: wire.LabelQuestion) -> wire.LabelVerdict:
        """Test the kind of a head with the model on new texts; return the verdict in words."""
        if self.model is None:
            raise InputError(NO_TESTER)
        from attention_atlas.models.stoppable import stoppable

        with self._in_words("test this label"):
            kind = known_kind(self.atlas, asked.head)
            with self.model.held() as loaded, stoppable(loaded.model):
                return label_verdict(asked.head, kind, loaded)

    def _why_not(self) -> str:
        if self.model is None:
            return self._refusal or NO_MODEL
        if self.atlas.receipt.how in (GIVEN, CACHE):
            return "this atlas was made from files of another tool, so its inputs cannot be run"
        if self.atlas.receipt.how == "outputs":
            return "this model gives its weights alone, so nothing of its attention can be edited"
        return ""

    def _refuse(self, asked: wire.EditInput) -> None:
        why = self._why_not()
        if why:
            raise InputError(why)
        if not 0 <= asked.input < len(self.atlas):
            raise PickError(
                f"there is no input {asked.input}; there are 0 to {len(self.atlas) - 1}"
            )
        if len(asked.edits) > MOST_EDITS:
            raise InputError(f"{len(asked.edits)} edits were sent; send at most {MOST_EDITS}")
        if not 0 <= asked.generate <= MOST_GENERATED:
            raise InputError(
                f"{asked.generate} new tokens were asked for; ask for 0 to {MOST_GENERATED}"
            )

    def _input(self, number: int, loaded: "Loaded") -> "LabInput":
        """Return an input with its plain run; the least recently used one is forgotten."""
        from attention_atlas.page.live.lab_input import LabInput

        known = self._inputs.pop(number, None) or LabInput(self.atlas, number, loaded)
        self._inputs[number] = known
        while len(self._inputs) > REMEMBERED:
            self._inputs.pop(next(iter(self._inputs)))
        return known

    @contextmanager
    def _in_words(self, deed: str) -> Iterator[None]:
        """Turn what a model says about odd numbers into one sentence; the log has the rest."""
        try:
            yield
        except AtlasError as problem:
            said = str(problem)
            raise type(problem)(said if len(said) <= _LONGEST else said[:_LONGEST] + "…") from None
        except Exception as problem:
            if is_out_of_memory(problem):
                self._inputs.clear()  # plain runs can be made again
            known = in_words(problem)
            if known is not None:
                raise known from None
            _log.warning("the model could not %s", deed, exc_info=True)
            line = (str(problem).strip() or type(problem).__name__).splitlines()[0][:200]
            raise ModelError(f"the model cannot {deed}: {line}") from problem
