"""How are the edits that a page sends read? As JSON of edits, but no file is opened by a name.

`from` is a text, a pair of texts or the number of an input of the atlas, or several of these. They
are encoded at once, so that a text that looks like a path stays a text.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from attention_atlas.edits.edit import Edit
from attention_atlas.edits.inputs import Given, freeze
from attention_atlas.edits.table import from_json
from attention_atlas.lab.stored_input import encode_stored
from attention_atlas.models.encode import encode
from attention_atlas.models.inputs import Input
from attention_atlas.models.load import Loaded
from attention_atlas.names.errors import InputError, PickError
from attention_atlas.page.wire.constants import LONGEST_TEXT, MOST_GENERATED
from attention_atlas.store.reader import StoredAtlas

REFERENCES = 8  # inputs that a mean or a resampled head is taken from
_LABEL = 40  # characters of a text in a sentence


@dataclass(frozen=True)
class ReadEdit:
    """An edit as it is applied to one input, and the words for the input that it takes from."""

    edit: Edit
    source: str = ""


@dataclass(frozen=True)
class EditReader:
    """What reads the edits of one input of an atlas."""

    atlas: StoredAtlas
    number: int
    loaded: Loaded
    tokens: int  # of its longest stream

    def read(self, raw: Mapping[str, Any]) -> ReadEdit | None:
        """Return an edit from its JSON; None if it is not for this input."""
        fields, source = dict(raw), ""
        self._refuse_long_lists(fields)
        if fields.get("from") is not None:
            several = fields["from"] if isinstance(fields["from"], list) else [fields["from"]]
            if not 0 < len(several) <= REFERENCES:
                raise InputError(
                    f"an edit takes from {len(several)} inputs; give 1 to {REFERENCES}"
                )
            fields["from"] = [self._given(each) for each in several]
            source = _label(several[0])
        edit = from_json(fields)
        if edit.inputs is not None and self.number not in edit.inputs:
            return None
        if edit.references == ():
            edit = replace(edit, from_=self._others())  # type: ignore[call-arg]
        return ReadEdit(replace(edit, inputs=None), source)

    def _refuse_long_lists(self, fields: Mapping[str, Any]) -> None:
        """Refuse more positions than there can be tokens: a pass would take very long."""
        for name in ("positions", "tokens", "token", "align"):
            given = fields.get(name)
            if isinstance(given, list) and len(given) > self.tokens + MOST_GENERATED:
                raise InputError(
                    f"{name} of an edit lists {len(given)} tokens and the input has {self.tokens}; "
                    "name each token once"
                )

    def _given(self, given: Any) -> Given:
        """Return an input that an edit takes from, as ready-made tensors."""
        if isinstance(given, int) and not isinstance(given, bool):
            if not 0 <= given < len(self.atlas):
                raise PickError(
                    f"there is no input {given} to take from; there are 0 to {len(self.atlas) - 1}"
                )
            return freeze(encode_stored(self.atlas, given, self.loaded).tensors)
        texts = [given] if isinstance(given, str) else given
        if (
            not isinstance(texts, list)
            or len(texts) not in (1, 2)
            or not all(isinstance(text, str) and text.strip() for text in texts)
            or any(len(text) > LONGEST_TEXT for text in texts)
        ):
            raise InputError(
                "an edit takes from something that is no input; give the number of an input, a "
                f"text, or a pair of texts of at most {LONGEST_TEXT} characters"
            )
        kind = "text" if len(texts) == 1 else "pair"
        return freeze(encode(self.loaded, Input(kind, *texts)).tensors)

    def _others(self) -> tuple[Given, ...]:
        """Return the first other inputs of the atlas, as ready-made tensors."""
        others = [number for number in range(len(self.atlas)) if number != self.number]
        if not others:
            raise InputError(
                "this edit takes its values from other inputs and the atlas has one input; give "
                "from=[text, …]"
            )
        return tuple(
            freeze(encode_stored(self.atlas, number, self.loaded).tensors)
            for number in others[:REFERENCES]
        )


def _label(given: Any) -> str:
    if isinstance(given, int):
        return f"input {given}"
    text = " / ".join(given) if isinstance(given, list) else str(given)
    return f"“{text if len(text) <= _LABEL else text[: _LABEL - 1].rstrip() + '…'}”"
