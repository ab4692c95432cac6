"""Which inputs are captured, and how are they encoded as tensors?"""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from attention_atlas.models.encode import Encoded, encode
from attention_atlas.models.inputs import Input
from attention_atlas.models.load import Loaded
from attention_atlas.models.media import can_open
from attention_atlas.names.errors import InputError

REMEMBERED = 1_000  # the most encoded texts to keep in memory


@dataclass
class Corpus:
    """The inputs of a capture by their numbers, and the model that reads them."""

    loaded: Loaded
    given: dict[int, Input]
    truncate: bool = False
    sizes: dict[int, float] = field(default_factory=dict)  # bytes of each input, once planned
    _encoded: dict[int, Encoded] = field(default_factory=dict)

    def encode(self, number: int) -> Encoded:
        """Return one input as tensors; encoded texts are kept, since they are needed twice."""
        known = self._encoded.get(number)
        if known is not None:
            return known
        try:
            item = encode(self.loaded, self.given[number], truncate=self.truncate)
        except InputError as problem:
            if len(self.given) == 1:
                raise
            raise InputError(f"input {number}: {problem}") from problem
        if self.given[number].kind in ("text", "pair") and len(self._encoded) < REMEMBERED:
            self._encoded[number] = item
        return item

    def is_cheap(self, number: int) -> bool:
        """Tell whether encoding an input needs its tokenizer alone."""
        two_sided = getattr(self.loaded.model.config, "is_encoder_decoder", False)
        return self.given[number].kind in ("text", "pair", "tensors") and not two_sided


def without_broken_pictures(given: list[Input]) -> tuple[list[Input], list[str]]:
    """Return the inputs without a folder's pictures that cannot be opened, and their names."""
    broken = [
        item
        for item in given
        if item.may_skip and not all(can_open(image) for image in item.images)
    ]
    if not broken:
        return given, []
    names = [str(item.source) for item in broken]
    if len(broken) == len(given):
        raise InputError(
            f"none of the {len(given)} pictures can be opened, {names[0]} for example; "
            "give a folder with readable pictures"
        )
    many = f"{len(names)} of {len(given)} pictures"
    print(f"left out {many}, which cannot be opened: {', '.join(names)}", file=sys.stderr)
    skipped = {id(item) for item in broken}
    return [item for item in given if id(item) not in skipped], names


def as_json(inputs: Sequence[Input]) -> list[dict[str, Any]] | None:
    """Return inputs as JSON, or None if one of them has more than texts and file names."""
    rows = []
    for given in inputs:
        named = all(isinstance(image, str | Path) for image in given.images)
        if given.audio is not None or given.tensors or given.cells is not None or not named:
            return None
        images = [str(Path(image).resolve()) for image in given.images]
        rows.append(
            {"kind": given.kind, "text": given.text, "second": given.second, "images": images,
             "source": given.source, "columns": dict(given.columns)}
        )  # fmt: skip
    try:
        json.dumps(rows)
    except TypeError:
        return None
    return rows


def from_json(rows: list[dict[str, Any]]) -> list[Input]:
    """Return the inputs that `as_json` wrote."""
    return [Input(**{**row, "images": tuple(row["images"])}) for row in rows]
