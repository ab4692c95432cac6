"""Would another head, or another position, have done the same? The same edits, moved at random."""

from dataclasses import replace
from typing import Any

import numpy as np

from attention_atlas.edits.anatomy import Anatomy
from attention_atlas.edits.edit import Edit
from attention_atlas.edits.mask import Mask
from attention_atlas.edits.names import heads_by_layer

Dice = np.random.Generator


def other_heads(edits: list[Edit], known: Anatomy, dice: Dice) -> list[Edit] | None:
    """Return the edits with other heads of the same layers; None if a layer has too few."""
    named = heads_by_layer([name for edit in edits for name in edit.heads], known)
    moved: dict[str, str] = {}
    for layer, heads in named.items():
        others = [head for head in range(layer.heads) if head not in heads]
        if len(others) < len(heads):
            return None
        drawn = dice.choice(others, len(heads), replace=False)
        moved |= {layer.name(a): layer.name(int(b)) for a, b in zip(heads, drawn, strict=True)}
    return [replace(edit, heads=_moved_heads(edit, known, moved)) for edit in edits]


def _moved_heads(edit: Edit, known: Anatomy, moved: dict[str, str]) -> tuple[str, ...]:
    return tuple(
        moved[layer.name(head)]
        for layer, heads in heads_by_layer(edit.heads, known).items()
        for head in heads
    )


def other_positions(edits: list[Edit], length: int, dice: Dice) -> list[Edit] | None:
    """Return the edits at other positions; None if none has any, or there are too few.

    The first token is left out: heads that have nothing to do rest on it.
    """
    named = sorted({position for edit in edits for position in _positions(edit)})
    others = [position for position in range(1, length) if position not in named]
    if not named or len(others) < len(named):
        return None
    drawn = [int(position) for position in dice.choice(others, len(named), replace=False)]
    moved = dict(zip(named, drawn, strict=True))
    return [_at_positions(edit, moved) for edit in edits]


def _positions(edit: Edit) -> list[int]:
    """Return the positions that an edit is about: tokens and keys of a mask, else its own."""
    if isinstance(edit, Mask):
        return [*(edit.tokens or ()), *(key for _, key in edit.edges or ())]
    return list(edit.positions or ())


def _at_positions(edit: Edit, moved: dict[int, int]) -> Edit:
    changes: dict[str, Any] = {}
    if isinstance(edit, Mask):
        if edit.tokens is not None:
            changes["tokens"] = tuple(moved[token] for token in edit.tokens)
        if edit.edges is not None:
            changes["edges"] = tuple((query, moved[key]) for query, key in edit.edges)
    elif edit.positions is not None:
        changes["positions"] = tuple(moved[position] for position in edit.positions)
    return replace(edit, **changes)
