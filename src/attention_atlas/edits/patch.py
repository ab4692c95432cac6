"""What if a head did here what it did on another input?

What is taken: its pattern, query, key, value or output, from a run of the unedited model. Tokens at
the same position correspond, if both inputs have as many; else `align` says which do.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from attention_atlas.edits.anatomy import ModelLayer
from attention_atlas.edits.edit import Edit, Stage, head_names, numbers
from attention_atlas.edits.here import Here, grid
from attention_atlas.edits.inputs import Given, freeze_all
from attention_atlas.edits.seen import seen_keys
from attention_atlas.edits.shared import refuse_shared
from attention_atlas.names.arguments import several
from attention_atlas.names.errors import InputError
from attention_atlas.record.watch.door import Passing

STAGES = {
    "pattern": Stage.weights,
    "query": Stage.vectors,
    "key": Stage.vectors,
    "value": Stage.vectors,
    "output": Stage.output,
}


@dataclass(frozen=True)
class Patch(Edit):
    """Heads that do what they did on another input."""

    what: str
    from_: tuple[Given, ...]
    align: tuple[tuple[int, int], ...] | None  # (token here, token there)
    shared: bool | None

    kind: ClassVar[str] = "patch"
    alone: ClassVar[bool] = True

    @property
    def stage(self) -> Stage:
        """Tell the stage of what is taken."""
        return STAGES[self.what]

    @property
    def sides(self) -> frozenset[str]:  # type: ignore[override]
        """Tell what is read from the other input."""
        return frozenset({self.what})

    @property
    def references(self) -> tuple[Given, ...]:
        """Return the other input."""
        return self.from_

    def check(self, heads: dict[ModelLayer, tuple[int, ...]]) -> None:
        """Refuse keys and values that heads share which are not named."""
        refuse_shared(self.what, heads, bool(self.shared))

    def before(self, passing: Passing, here: Here) -> None:
        """Take over query, key or value."""
        groups = here.layer.groups_of(here.heads)
        if self.what == "query":
            passing.query = self._taken(passing.query, here, here.heads, here.first)
        elif self.what == "key":
            passing.key = self._taken(passing.key, here, groups, here.first_key)
        elif self.what == "value":
            passing.value = self._taken(passing.value, here, groups, here.first_key)

    def _taken(self, vectors: Tensor, here: Here, heads: tuple[int, ...], first: int) -> Tensor:
        (there,) = here.reference.read(here.layer, here.part, self.what)  # (h, n, D)
        rows = here.rows(len(vectors))
        if not rows:
            return vectors
        count = vectors.shape[2] if self.what == "query" else here.length
        to, source = self._pairs(here, first, count, there.shape[1])
        if not to:
            return vectors
        new = vectors.clone()
        new[grid(rows, heads, to, device=new.device)] = there[:, source].to(new)
        return new

    def weights(self, passing: Passing, here: Here) -> None:
        """Take over rows of weights."""
        own = passing.weights
        if self.what != "pattern" or own is None:
            return
        (there,) = here.reference.read(here.layer, here.part, "pattern")  # (h, n, m)
        rows = here.rows(len(own))
        if not rows:
            return
        to, source = self._pairs(here, here.first, own.shape[2], there.shape[1])
        if not to:
            return
        place = grid(rows, here.heads, to, device=own.device)
        moved = self._columns(there[:, source].to(own), here, own.shape[3])
        if self.align is not None:
            moved = _as_large(
                moved * seen_keys(passing)[place], there[:, source].sum(-1), own[place]
            )
        new = own.clone()
        new[place] = moved
        passing.weights = new

    def _columns(self, rows: Tensor, here: Here, keys: int) -> Tensor:
        """Return rows of weights (h, n, m) over the keys of this input, (h, n, M)."""
        pairs = self.align if self.align is not None and not here.layer.cross else None
        if pairs is None:
            if here.first == 0 and rows.shape[-1] != here.length:
                raise InputError(self._lengths(here, here.length, rows.shape[-1]))
            pairs = tuple((key, key) for key in range(rows.shape[-1]))
        here_there = [
            (key - here.first_key, there)
            for key, there in pairs
            if 0 <= key - here.first_key < keys and there < rows.shape[-1]
        ]
        moved = rows.new_zeros(*rows.shape[:-1], keys)
        moved[..., [key for key, _ in here_there]] = rows[..., [there for _, there in here_there]]
        return moved

    def output(self, passing: Passing, here: Here) -> None:
        """Take over what the heads move."""
        if self.what != "output":
            return
        (there,) = here.reference.read(here.layer, here.part, "output")  # (n, h, E)
        output = passing.output
        rows = here.rows(len(output))
        if not rows:
            return
        to, source = self._pairs(here, here.first, output.shape[1], len(there))
        if not to:
            return
        new = output.clone()
        new[grid(rows, to, here.heads, device=new.device)] = there[source].to(new)
        passing.output = new

    def _pairs(
        self, here: Here, first: int, count: int, length: int
    ) -> tuple[list[int], list[int]]:
        """Return the places of this call that are replaced, and the tokens that replace them."""
        pairs = self.align
        if pairs is None:
            if first == 0 and here.batch.past == 0 and count != length:
                raise InputError(self._lengths(here, count, length))
            pairs = tuple((token, token) for token in range(length))
        elif any(there >= length for _, there in pairs):
            raise InputError(
                f"align names token {max(there for _, there in pairs)} of the input that "
                f"{here.layer.name(here.heads[0])} is patched from, which has {length}"
            )
        chosen = [
            (token - first, there)
            for token, there in pairs
            if 0 <= token - first < count and (self.positions is None or token in self.positions)
        ]
        return [place for place, _ in chosen], [there for _, there in chosen]

    def _lengths(self, here: Here, count: int, length: int) -> str:
        return (
            f"this input has {count} tokens and the one that {here.layer.name(here.heads[0])} is "
            f"patched from has {length}; say which correspond: align=[(here, there), …]"
        )


def _as_large(moved: Tensor, total: Tensor, own: Tensor) -> Tensor:
    """Return rows of weights with the sums that they had; rows of which nothing is left stay."""
    size = moved.sum(-1, keepdim=True)
    scaled = moved * (total.to(moved)[..., None] / size.clamp_min(torch.finfo(moved.dtype).tiny))
    return torch.where(size > 0, scaled, own)


def patch(
    heads: Any,
    what: str = "output",
    *,
    from_: Any,
    align: Any = None,
    shared: bool | None = None,
    inputs: Any = None,
    positions: Any = None,
) -> Patch:
    """Let heads do what they did on another input; return the edit.

    what    "pattern", "query", "key", "value" or "output"
    from_   the other input
    align   pairs (token here, token there), for inputs of different length
    shared  touch also the heads that share this key or value
    """
    if what not in STAGES:
        raise InputError(f"a patch of {what!r} was asked for; give one of {', '.join(STAGES)}")
    given = freeze_all(from_)
    if len(given) != 1:
        raise InputError(f"a patch takes from one input and was given {len(given)}; give one")
    pairs = None if align is None else tuple(_pair(pair) for pair in several(align, "align"))
    where = numbers(inputs, "input"), numbers(positions, "position")
    return Patch(head_names(heads), *where, what, given, pairs, shared or None)


def _pair(pair: Any) -> tuple[int, int]:
    both = numbers(pair, "token") or ()
    if len(both) != 2:
        raise InputError(f"{pair!r} is no pair of tokens; give pairs (here, there)")
    return both[0], both[1]
