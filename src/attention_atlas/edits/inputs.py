"""How is an input written inside an edit, which is frozen and JSON?

A text stays a text, a pair a pair, the path of a picture or a sound a path. Ready-made tensors are
kept as the JSON of their numbers.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from attention_atlas.models.inputs import Input, read_inputs
from attention_atlas.names.arguments import several
from attention_atlas.names.errors import InputError


@dataclass(frozen=True)
class Tensors:
    """Ready-made tensors of one input, as JSON."""

    text: str

    def to_json(self) -> Any:
        """Return the tensors as nested lists by name."""
        return json.loads(self.text)


Given = str | tuple[str, str] | Tensors


def freeze(given: Any) -> Given:
    """Return an input as it is written in an edit."""
    if isinstance(given, str | Tensors):
        return given
    if isinstance(given, Path):
        return str(given)
    if isinstance(given, list | tuple) and len(given) == 2:
        first, second = given
        if isinstance(first, str) and isinstance(second, str):
            return first, second
    if isinstance(given, Input):
        return _from_input(given)
    if isinstance(given, Mapping):
        return Tensors(json.dumps({name: _listed(value) for name, value in sorted(given.items())}))
    raise InputError(
        f"an input of type {type(given).__name__} cannot be written into an edit; give a text, a "
        "pair, a path or tensors"
    )


def freeze_all(given: Any) -> tuple[Given, ...]:
    """Return one or several inputs as they are written in an edit."""
    if given is None:
        return ()
    one = isinstance(given, str | Path | Tensors | Mapping | Input)
    pair = isinstance(given, tuple) and len(given) == 2 and all(isinstance(x, str) for x in given)
    inputs = [given] if one or pair else several(given, "the inputs")
    return tuple(freeze(each) for each in inputs)


def thaw(given: Given) -> Input:
    """Return the input that `freeze` wrote."""
    source: Any = given
    if isinstance(given, Tensors):
        # Real numbers stay float64 here; a model gets them in its own precision.
        source = {
            name: torch.tensor(values, dtype=_dtype(values))
            for name, values in given.to_json().items()
        }
    several = read_inputs(source if isinstance(given, str | tuple) else [source])
    if len(several) != 1:
        raise InputError(f"{given} holds {len(several)} inputs; name one input of an edit")
    return several[0]


def _from_input(given: Input) -> Given:
    if given.kind == "text" and given.text is not None:
        return given.text
    if given.kind == "pair" and given.text is not None and given.second is not None:
        return given.text, given.second
    if given.kind == "tensors" and given.tensors is not None:
        return freeze(given.tensors)
    (image, *more) = given.images or (None,)
    if given.kind == "image" and not more and isinstance(image, str | Path):
        return str(Path(image).resolve())
    raise InputError(
        f"an input of kind {given.kind} cannot be written into an edit; give from_ a text, a pair, "
        "a path or tensors"
    )


def _listed(value: Any) -> Any:
    if torch.is_tensor(value):
        return value.detach().cpu().tolist()
    return value.tolist() if isinstance(value, np.ndarray) else value


def _dtype(values: Any) -> torch.dtype | None:
    while isinstance(values, list) and values:
        values = values[0]
    return torch.float64 if isinstance(values, float) else None
