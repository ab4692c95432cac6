"""What does a measure get to see?

A block of rows: the weights of heads of one layer in some rows of one input. A block is small
however long the input is. Axes: H heads, R rows of the block, M keys of the input.
"""

from copy import copy
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating]
Bools = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Keys:
    """The tokens that an input's rows look at: the same for all blocks of the input."""

    ids: Integers  # (M,); −1: none
    special: Bools  # (M,)
    punctuation: Bools  # (M,)
    place: Integers | None = None  # (M, 3): picture, row, column; −1: no patch
    vectors: Floats | None = None  # (H, M, D)
    values: Floats | None = None  # (H, M, E)

    @cached_property
    def patches(self) -> Bools:
        """(M,) bool: tokens that show a part of a picture."""
        if self.place is None:
            return np.zeros(len(self.ids), bool)
        return np.asarray((self.place[:, 1:] >= 0).all(1))

    @cached_property
    def words(self) -> Bools:
        """(M,) bool: tokens that are neither patches nor special."""
        return np.asarray(~self.patches & ~self.special)

    @cached_property
    def vector_lengths(self) -> Floats:
        """(H, M): the norm of each key."""
        assert self.vectors is not None
        return np.asarray(np.linalg.norm(self.vectors, axis=2))

    @cached_property
    def value_lengths(self) -> Floats:
        """(H, M): the norm of each value."""
        assert self.values is not None
        return np.asarray(np.linalg.norm(self.values, axis=2))


@dataclass(frozen=True)
class RowBlock:
    """Some rows of some heads on one input."""

    weights: Floats  # (H, R, M)
    rows: npt.NDArray[np.intp]  # (R,): the position of each row in its input
    seen: Bools  # (R, M)
    keys: Keys
    square: bool = True  # rows and keys are the same tokens
    query: Floats | None = None  # (H, R, D)

    @cached_property
    def visible(self) -> Integers:
        """(R,): how many keys each row may see."""
        return np.asarray(self.seen.sum(1), np.int64)

    @cached_property
    def choosing(self) -> Bools:
        """(R,) bool: rows that see at least two keys; the others have nothing to choose."""
        return np.asarray(self.visible > 1)

    @cached_property
    def distance(self) -> Floats:
        """(R, M): |i − j|."""
        columns = np.arange(self.seen.shape[1], dtype=np.float32)
        return np.asarray(np.abs(self.rows.astype(np.float32)[:, None] - columns))

    @cached_property
    def patch_rows(self) -> Bools:
        """(R,) bool: rows of patches."""
        return np.asarray(self.keys.patches[self.rows])

    @cached_property
    def steps(self) -> Integers:
        """(R, M, 2): rows down and columns to the right from one patch to another."""
        assert self.keys.place is not None
        cells = self.keys.place[:, 1:]
        return np.asarray(cells[None] - cells[self.rows, None])

    @cached_property
    def beside(self) -> Bools:
        """(R, M) bool: pairs of patches of the same picture."""
        assert self.keys.place is not None
        image = self.keys.place[:, 0]
        both = self.patch_rows[:, None] & self.keys.patches
        return np.asarray(both & (image[self.rows, None] == image))

    def share(self, pairs: Bools) -> Floats:
        """Sum the weight on seen pairs (R, M); returns (H, R), NaN in rows that see none."""
        pairs = pairs & self.seen
        held = np.einsum("hrm,rm->hr", self.weights, pairs.astype(self.weights.dtype))
        return np.where(pairs.any(1), held, np.nan)

    def at(self, offset: int) -> Floats:
        """Get the weight on key i + offset; returns (H, R), NaN in rows that do not see it."""
        columns = self.rows + offset
        inside = (columns >= 0) & (columns < self.seen.shape[1])
        columns = np.where(inside, columns, 0)
        index = np.arange(len(columns))
        return np.where(inside & self.seen[index, columns], self.weights[:, index, columns], np.nan)

    def shuffled(self, dice: np.random.Generator) -> "RowBlock":
        """Shuffle the weights of each row among the keys it may see; returns a new block.

        Blocks of an input, taken in order with the same dice, give what the whole input would.
        """
        order = np.where(self.seen, dice.random(self.seen.shape, np.float32), np.float32(2))
        order = order.argsort(1)  # visible keys first, in random order
        places = np.where(self.seen, 0, 1).argsort(1, kind="stable")  # visible keys, in order
        source = np.empty_like(order)
        np.put_along_axis(source, places, order, 1)
        return self._with(np.take_along_axis(self.weights, source[None], 2))

    def even(self) -> "RowBlock":
        """Make the block of one head that is even over the keys it may see."""
        return self._with((self.seen / np.maximum(self.visible, 1)[:, None])[None])

    def _with(self, weights: Floats) -> "RowBlock":
        """Copy the block with other weights; keeps cached properties: none depends on weights."""
        other = copy(self)
        object.__setattr__(other, "weights", weights)
        return other
