"""Which inputs are patched into each other, and what is the answer to each?"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from attention_atlas.edits.inputs import Given, freeze
from attention_atlas.names.arguments import several
from attention_atlas.names.errors import InputError


@dataclass(frozen=True)
class Pair:
    """A clean and a corrupt input, with the answer to the clean one."""

    clean: Given
    corrupt: Given
    answer: Any  # a word that is one token, a token id or a label
    wrong: Any = None  # the answer to the corrupt input
    align: Any = None  # pairs (clean token, corrupt token), for inputs of different length


def read_pairs(given: Any) -> list[Pair]:
    """Return pairs given as one or several, each a Pair or a dict of its fields."""
    pairs = [given] if isinstance(given, Pair | Mapping) else several(given, "pairs")
    if not pairs:
        raise InputError("no pair of inputs was given; give clean, corrupt and answer")
    return [_pair(each) for each in pairs]


def _pair(given: Any) -> Pair:
    if isinstance(given, Pair):
        return given
    try:
        pair = Pair(**given)
    except TypeError as problem:
        raise InputError(
            f"{given!r} is no pair of inputs; give a dict with clean, corrupt, answer and, if "
            "needed, wrong and align"
        ) from problem
    return Pair(freeze(pair.clean), freeze(pair.corrupt), pair.answer, pair.wrong, pair.align)
