"""How do blocks of rows add up to one number a head?

A measure turns each block into a state (a few arrays), joins the states of an input's blocks, and
reads its value from the joined state. No state grows with the number of rows. Most measures are a
`RowMean`: they only say what one row is worth.

A measure also says what chance gives. Shuffling the weights of a row among the keys it sees gives
each of these keys the row's mean weight on average, so a number that is linear in the weights has
the mean, over all shuffles, that it has for an even row of the same sum: no shuffling is needed.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from attention_atlas.measure.arrays import Floats, as_numpy, namespace
from attention_atlas.measure.chance import ChanceBlock
from attention_atlas.measure.row_block import RowBlock

State = tuple[Any, ...]  # of arrays


class Accumulator(ABC):
    """What a measure keeps of an input's blocks; subclass it where a `RowMean` does not do."""

    @abstractmethod
    def state(self, block: RowBlock) -> State:
        """Compute the state of one block."""

    def shuffled(self, chance: ChanceBlock) -> State:
        """Compute the state of a block whose rows are shuffled."""
        return self.state(chance.block.shuffled(chance.dice))

    def join(self, left: State, right: State) -> State:
        """Join the states of two blocks; returns their sums unless a subclass overrides it."""
        return tuple(a + b for a, b in zip(left, right, strict=True))

    @abstractmethod
    def value(self, state: State) -> Floats:
        """Compute the value of a state in NumPy; returns (H,), NaN where there is no answer."""

    def read(self, state: State) -> Floats:
        """Compute the value of a state of either library; returns (H,)."""
        return self.value(tuple(map(as_numpy, state)))

    def over(self, blocks: Iterable[RowBlock]) -> Floats:
        """Measure an input that is given by its blocks; returns (H,)."""
        return self.read(reduce(self.join, map(self.state, blocks)))


@dataclass(frozen=True)
class RowMean(Accumulator):
    """The mean of one number a row, over the rows that have a choice and a number."""

    of: Callable[[RowBlock], Any]  # (H, R); NaN: this row does not count
    linear: bool = False  # `of` is linear in the weights, but for a constant: chance is exact

    def state(self, block: RowBlock) -> State:
        return _summed(block, self.of(block))

    def shuffled(self, chance: ChanceBlock) -> State:
        if self.linear:
            flat, nothing = self.of(chance.even)  # (R,) each
            return _summed(chance.block, nothing + chance.block.mass * (flat - nothing))
        return self.state(chance.some_shuffled)

    def value(self, state: State) -> Floats:
        total, count = state
        return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _summed(block: RowBlock, per_row: Any) -> State:
    xp = block.xp
    known = block.choosing & ~xp.isnan(per_row)
    counted = xp.where(known, per_row, 0)
    return xp.sum(counted, axis=1, dtype=xp.float64), known.sum(1)


@dataclass(frozen=True)
class RowMaximum(Accumulator):
    """The largest number of any row."""

    of: Callable[[RowBlock], Any]  # (H, R); NaN: this row does not count

    def state(self, block: RowBlock) -> State:
        per_row, xp = self.of(block), block.xp
        return (xp.amax(xp.where(xp.isnan(per_row), -np.inf, per_row), axis=1),)

    def join(self, left: State, right: State) -> State:
        return (namespace(left[0]).maximum(left[0], right[0]),)

    def value(self, state: State) -> Floats:
        return np.where(np.isneginf(state[0]), np.nan, state[0])
