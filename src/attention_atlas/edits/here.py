"""Which places of one attention call does an edit change?

Positions are those of tokens in the whole input. While a model generates with a cache, a call has
the newest queries only; its first query stands at `first`, its first key at `first_key`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from attention_atlas.edits.anatomy import ModelLayer
from attention_atlas.edits.edit import Edit
from attention_atlas.edits.inputs import Given


@dataclass(frozen=True)
class Batch:
    """What is known of the batch that runs: its size, its inputs, and how much is in the cache."""

    size: int
    numbers: tuple[int, ...] | None = None  # of its inputs in the atlas; None: rows of the batch
    past: int = 0  # tokens before the first query of this pass
    own: Mapping[int, Given] = field(default_factory=dict)  # inputs of the atlas, by number

    def number(self, row: int) -> int:
        """Return the number of the input in a row."""
        return row if self.numbers is None or row >= len(self.numbers) else self.numbers[row]


@dataclass
class Here:
    """One attention call, as one edit sees it."""

    edit: Edit
    layer: ModelLayer
    heads: tuple[int, ...]
    batch: Batch
    first: int
    first_key: int
    length: int  # keys of the call that are tokens
    part: int  # how many calls this visit made before: DiffLlama's values come in halves
    reference: Any = None  # what was read from its reference run
    world: range | None = None  # the rows of the batch that it may change; None: all
    notes: dict[str, Tensor] = field(default_factory=dict)  # from one stage for a later one

    def rows(self, size: int) -> list[int]:
        """Return the rows that the edit changes, of a call with `size` rows."""
        inputs, rows = self.edit.inputs, range(size) if self.world is None else self.world
        return [row for row in rows if inputs is None or self.batch.number(row) in inputs]

    def queries(self, count: int) -> list[int]:
        """Return the queries of a call, among so many, that stand at the edit's positions."""
        return self.local(self.edit.positions, self.first, count)

    def keys(self, count: int) -> list[int]:
        """Return the keys of a call, among so many, that stand at the edit's positions."""
        return self.local(self.edit.positions, self.first_key, count)

    @staticmethod
    def local(positions: tuple[int, ...] | None, first: int, count: int) -> list[int]:
        """Return the places in a call of some positions in the input; None: all."""
        if positions is None:
            return list(range(count))
        return [position - first for position in positions if first <= position < first + count]


def grid(*axes: Any, device: Any) -> tuple[Tensor, ...]:
    """Return an index of every combination of some places along the first axes of a tensor."""
    several = len(axes)
    return tuple(
        torch.as_tensor(axis, dtype=torch.long, device=device).reshape(
            [-1 if dim == own else 1 for dim in range(several)]
        )
        for own, axis in enumerate(axes)
    )
