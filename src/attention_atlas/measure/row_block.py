"""What does a measure get to see?

A block of rows: the weights of heads of one layer in some rows of one input. A block is small
however long the input is. Axes: H heads, R rows of the block, M keys: those of the input up to the
last one that any row of the block sees, so a causal input costs half.

Arrays are NumPy's or torch's, all of one block the same (`arrays`).
"""

from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from attention_atlas.measure.arrays import (
    Bools,
    Floats,
    Integers,
    beside,
    lengths,
    namespace,
    numbers,
)
from attention_atlas.measure.row_sums import RowSums


@dataclass(frozen=True)
class Keys:
    """Tokens that rows look at."""

    ids: Integers  # (M,); −1: none
    special: Bools  # (M,)
    punctuation: Bools  # (M,)
    place: Integers | None = None  # (M, 3): picture, row, column; −1: no patch
    vectors: Floats | None = None  # (H, M, D)
    values: Floats | None = None  # (H, M, E)
    kept: Bools | None = None  # (M,): keys that were not taken out (`set_aside`); None: all

    @cached_property
    def patches(self) -> Any:
        """(M,) bool: tokens that show a part of a picture."""
        if self.place is None:
            return self.ids != self.ids
        return (self.place[:, 1:] >= 0).all(1)

    @cached_property
    def words(self) -> Any:
        """(M,) bool: tokens that are neither patches nor special."""
        return ~self.patches & ~self.special

    @cached_property
    def vector_lengths(self) -> Any:
        """(H, M): the norm of each key."""
        return lengths(self.vectors)

    @cached_property
    def mean_length(self) -> Any:
        """(H,): the mean norm of the keys."""
        lengths = self.vector_lengths if self.kept is None else self.vector_lengths[:, self.kept]
        xp = namespace(lengths)
        return xp.mean(lengths, axis=1, dtype=xp.float64)

    @cached_property
    def mean_vector(self) -> Any:
        """(H, D): the mean of all keys."""
        assert self.vectors is not None
        return self.vectors.mean(1)

    @cached_property
    def value_lengths(self) -> Any:
        """(H, M): the norm of each value."""
        return lengths(self.values)

    def first(self, count: int) -> "Keys":
        """Return the first keys, without their values."""
        if count == len(self.ids):
            return self
        place = None if self.place is None else self.place[:count]
        vectors = None if self.vectors is None else self.vectors[:, :count]
        marks = self.ids[:count], self.special[:count], self.punctuation[:count]
        return Keys(*marks, place, vectors)


@dataclass(frozen=True)
class RowBlock:
    """Some rows of some heads on one input."""

    weights: Floats  # (H, R, M)
    rows: Integers  # (R,): the position of each row in its input
    seen: Bools  # (R, M)
    tokens: Keys  # all keys of the input
    square: bool = True  # rows and keys are the same tokens
    query: Floats | None = None  # (H, R, D)
    products: Floats | None = None  # (H, R, M): q·k, where the weights were made of them
    chance_step: int = 1  # the chance of what must be shuffled is of one row in so many
    whole: int = 0  # so many first keys are seen by every row; more may be
    first_seen: Integers | None = None  # (R,), where the keys that a row sees are neighbours
    fused: bool = False  # the sums of rows are computed by a kernel, all at once

    @cached_property
    def xp(self) -> Any:
        """The library of the arrays: the module `numpy` or `torch`."""
        return namespace(self.weights)

    @cached_property
    def keys(self) -> Keys:
        """The M keys of the block."""
        return self.tokens.first(self.seen.shape[1])

    @cached_property
    def visible(self) -> Any:
        """(R,): how many keys each row may see."""
        return self.seen.sum(1)

    @cached_property
    def choosing(self) -> Any:
        """(R,) bool: rows that see at least two keys; the others have nothing to choose."""
        return self.visible > 1

    @cached_property
    def sums(self) -> RowSums | None:
        """The sums of all rows, where a kernel computes them."""
        if not self.fused:
            return None
        from attention_atlas.measure.fused_sums import row_sums

        return row_sums(self)

    @cached_property
    def mass(self) -> Any:
        """(H, R): the sum of each row; below one where a sink takes part in the softmax."""
        return self.weights.sum(2) if self.sums is None else self.sums.mass

    @cached_property
    def largest(self) -> Any:
        """(H, R): the largest weight of each row."""
        return self.xp.amax(self.weights, axis=2) if self.sums is None else self.sums.largest

    @cached_property
    def received(self) -> Any:
        """(H, M): the attention that each key gets from rows that have a choice."""
        return self.xp.asarray(self.choosing, dtype=self.weights.dtype) @ self.weights

    @cached_property
    def columns(self) -> Any:
        """(M,): the position of each key."""
        return numbers(self.weights, self.seen.shape[1])

    @cached_property
    def distance(self) -> Any:
        """(R, M): |i − j|."""
        apart = self.xp.abs(self.rows[:, None] - self.columns)
        return self.xp.asarray(apart, dtype=self.weights.dtype)

    @cached_property
    def mean_distance(self) -> Any:
        """(H, R): Σⱼ w |i − j|."""
        return self.total(self.distance) if self.sums is None else self.sums.distance

    @property
    def mean_square_distance(self) -> Any:
        """(H, R): Σⱼ w |i − j|²."""
        return self.total(self.distance**2) if self.sums is None else self.sums.square_distance

    @cached_property
    def earlier_copies(self) -> Any:
        """(R, M) bool: earlier keys with the row's token id. Special tokens have none."""
        tokens, keys, rows = self.tokens, self.keys, self.rows[:, None]
        may_repeat = (tokens.ids >= 0) & ~tokens.special
        same = (tokens.ids[rows] == keys.ids) & ~keys.special
        return same & may_repeat[rows] & (self.columns < rows)

    @cached_property
    def patch_rows(self) -> Any:
        """(R,) bool: rows of patches."""
        return self.tokens.patches[self.rows]

    @cached_property
    def steps(self) -> Any:
        """(R, M, 2): rows down and columns to the right from one patch to another."""
        assert self.tokens.place is not None
        cells = self.tokens.place[:, 1:]
        return cells[None, : self.seen.shape[1]] - cells[self.rows, None]

    @cached_property
    def beside(self) -> Any:
        """(R, M) bool: pairs of patches of the same picture."""
        assert self.tokens.place is not None and self.keys.place is not None
        image = self.tokens.place[:, 0]
        both = self.patch_rows[:, None] & self.keys.patches
        return both & (image[self.rows, None] == self.keys.place[:, 0])

    def total(self, factor: Any) -> Any:
        """Sum the weights times a factor (R, M) or (M,) over the keys; returns (H, R)."""
        factor = self.xp.asarray(factor, dtype=self.weights.dtype)
        if factor.ndim == 1:
            return self.weights @ factor
        return self.xp.einsum("hrm,rm->hr", self.weights, factor)

    def share(self, pairs: Any) -> Any:
        """Sum the weight on seen pairs (R, M); returns (H, R), NaN in rows that see none."""
        pairs = pairs & self.seen
        return self.xp.where(pairs.any(1), self.total(pairs), np.nan)

    def at(self, offset: int) -> Any:
        """Get the weight on key i + offset; returns (H, R), NaN in rows that do not see it."""
        columns = self.rows + offset
        inside = (columns >= 0) & (columns < self.seen.shape[1])
        columns = self.xp.where(inside, columns, 0)
        index = numbers(self.weights, len(columns))
        seen = inside & self.seen[index, columns]
        return self.xp.where(seen, self.weights[:, index, columns], np.nan)

    def shuffled(self, dice: np.random.Generator) -> "RowBlock":
        """Shuffle the weights of each row among the keys it may see; returns a new block.

        Blocks of an input, taken in order with the same dice, give what the whole input would.
        """
        drawn = beside(self.weights, dice.random(tuple(self.seen.shape), np.float32))
        order = self.xp.argsort(self.xp.where(self.seen, drawn, 2.0), axis=1)  # seen ones first
        index = numbers(self.weights, len(order))[:, None]
        if self.first_seen is not None:  # then they go to the places from there on, round the end
            source = order[index, (self.columns - self.first_seen[:, None]) % len(self.columns)]
            return self._shuffled_as(self.weights[:, index, source])
        counts = self.columns  # their places, in order:
        places = self.xp.argsort(self.xp.where(self.seen, counts, counts + len(counts)), axis=1)
        source = self.xp.empty_like(order)
        source[index, places] = order
        return self._shuffled_as(self.weights[:, index, source])

    def _shuffled_as(self, weights: Any) -> "RowBlock":
        """Copy the block with shuffled weights of the same heads, which come of no products."""
        other = self.of(weights)
        object.__setattr__(other, "products", None)
        object.__setattr__(other, "fused", self.fused)
        return other

    def hide(self, values: Any) -> Any:
        """Set values (H, R, M) of keys that are not seen to zero, in place; returns them."""
        tail = values[:, :, self.whole :]
        tail *= self.seen[:, self.whole :]
        return values

    def even(self) -> "RowBlock":
        """Make the block of two heads: one even over the keys it may see, one of zeros."""
        even = self.seen / self.xp.clip(self.visible, 1, None)[:, None]
        even = self.xp.asarray(even, dtype=self.weights.dtype)
        return self.of(self.xp.stack([even, self.xp.zeros_like(even)]))

    def thinned(self) -> "RowBlock":
        """Keep one row in `chance_step`; returns the block of those rows."""
        if self.chance_step == 1:
            return self
        kept = self.rows % self.chance_step == self.chance_step // 2
        query = None if self.query is None else self.query[:, kept]
        first = None if self.first_seen is None else self.first_seen[kept]
        return RowBlock(
            self.weights[:, kept], self.rows[kept], self.seen[kept], self.tokens, self.square,
            query, whole=self.whole, first_seen=first, fused=self.fused,
        )  # fmt: skip

    def of(self, weights: Any) -> "RowBlock":
        """Copy the block with other weights; keeps what does not depend on them."""
        other = copy(self)
        for name in ("mass", "largest", "mean_distance", "received", "sums"):
            other.__dict__.pop(name, None)
        object.__setattr__(other, "weights", weights)
        object.__setattr__(other, "fused", False)
        return other
