"""How do blocks of rows add up to one number a head?

A measure turns each block into a state (a few arrays), joins the states of an input's blocks, and
reads its value from the joined state. No state grows with the number of rows. Most measures are a
`RowMean`: they only say what one row is worth.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce

import numpy as np

from attention_atlas.measure.row_block import Floats, RowBlock

State = tuple[Floats, ...]


class Accumulator(ABC):
    """What a measure keeps of an input's blocks; subclass it where a `RowMean` does not do."""

    @abstractmethod
    def state(self, block: RowBlock) -> State:
        """Compute the state of one block."""

    def join(self, left: State, right: State) -> State:
        """Join the states of two blocks; returns their sums unless a subclass overrides it."""
        return tuple(a + b for a, b in zip(left, right, strict=True))

    @abstractmethod
    def value(self, state: State) -> Floats:
        """Compute the value of a state; returns (H,), NaN where there is no answer."""

    def over(self, blocks: Iterable[RowBlock]) -> Floats:
        """Measure an input that is given by its blocks; returns (H,)."""
        return self.value(reduce(self.join, map(self.state, blocks)))


@dataclass(frozen=True)
class RowMean(Accumulator):
    """The mean of one number a row, over the rows that have a choice and a number."""

    of: Callable[[RowBlock], Floats]  # (H, R); NaN: this row does not count

    def state(self, block: RowBlock) -> State:
        per_row = self.of(block)
        known = block.choosing & ~np.isnan(per_row)
        return np.where(known, per_row, 0).sum(1, dtype=np.float64), known.sum(1)

    def value(self, state: State) -> Floats:
        total, count = state
        return np.where(count > 0, total / np.maximum(count, 1), np.nan)


@dataclass(frozen=True)
class RowMaximum(Accumulator):
    """The largest number of any row."""

    of: Callable[[RowBlock], Floats]  # (H, R); NaN: this row does not count

    def state(self, block: RowBlock) -> State:
        per_row = self.of(block)
        return (np.where(np.isnan(per_row), -np.inf, per_row).max(1, initial=-np.inf),)

    def join(self, left: State, right: State) -> State:
        return (np.maximum(left[0], right[0]),)

    def value(self, state: State) -> Floats:
        return np.where(np.isneginf(state[0]), np.nan, state[0])
