"""How are the weights of one head read in bands of rows and pieces of columns?

Here are weights that exist as they are, stored or given; `computed_weights` has those of queries
and keys. Keys can be taken out (`without`): each row is then a softmax over the keys that are left,
and over the head's own sink if it has one; a row that is left without keys is zero.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from attention_atlas.store.cores import each
from attention_atlas.store.form import Ints
from attention_atlas.store.rows import Float32, StoredLayer

ROWS = 256  # of a band
WIDE = 1024  # columns of a piece; with 256 rows it stays in a processor's second cache


class Band(Protocol):
    """Some rows of a head, in rising order, of which columns can be read."""

    @property
    def reach(self) -> range:
        """Get the columns outside of which these rows have no weight."""

    def piece(self, columns: range) -> Float32:
        """Return the weights (R, C) of some columns."""


class HeadWeights(Protocol):
    """The weights (N, M) of one head, read in bands of rows."""

    n: int
    m: int

    @property
    def bytes(self) -> int:
        """Get the size of what is held in memory."""

    def band(self, rows: Ints) -> Band:
        """Return some rows, in rising order."""


@dataclass(frozen=True)
class WholeRows:
    """A band whose rows are in memory."""

    rows: Float32  # (R, M)

    @property
    def reach(self) -> range:
        return range(self.rows.shape[1])

    def piece(self, columns: range) -> Float32:
        return self.rows[:, columns.start : columns.stop]


def without_keys(rows: Float32, without: Ints, sink: bool) -> Float32:
    """Return whole rows (R, M) as softmaxes over the keys that are left, and over the sink."""
    if not without.size:
        return rows
    left = rows.copy()
    left[:, without] = 0
    rest = left.sum(axis=1, keepdims=True, dtype=np.float64)
    if sink:
        rest += np.maximum(1 - rows.sum(axis=1, keepdims=True, dtype=np.float64), 0)
    return (left / np.where(rest > 0, rest, 1)).astype(np.float32)


class GivenWeights:
    """The weights (N, M) of one head that were given as an array."""

    def __init__(self, whole: Float32, without: Sequence[int] = ()):
        self._whole, self._without = whole, np.array(without, np.intp)
        (self.n, self.m), self.bytes = whole.shape, 0

    def band(self, rows: Ints) -> WholeRows:
        """Return some rows."""
        return WholeRows(without_keys(self._whole[rows], self._without, sink=True))


class StoredWeights:
    """The weights of one head that are stored as they are, without queries and keys."""

    def __init__(
        self,
        stored: StoredLayer,
        input: int,
        head: int,
        without: Sequence[int] = (),
        lengths: Float32 | None = None,  # (M,) of what values become; None: weights
    ):
        self.n, self.m = stored.size(input)
        self._stored, self._input, self._head = stored, input, np.array([head])
        self._without, self._lengths = np.array(without, np.intp), lengths

    @property
    def bytes(self) -> int:
        return 0  # rows are read from the file

    def band(self, rows: Ints) -> WholeRows:
        """Read some rows."""
        whole = self._stored.weights(self._input, self._head, rows)[0]
        whole = without_keys(whole, self._without, self._stored.layer.sink)
        if self._lengths is None:
            return WholeRows(whole)
        moved = whole * self._lengths
        total = moved.sum(axis=1, keepdims=True)
        return WholeRows((moved / np.where(total > 0, total, 1)).astype(np.float32, copy=False))


def window(head: HeadWeights, rows: range, columns: range) -> Float32:
    """Return the weights (R, C) of some rows and columns, computed a band of rows at a time."""
    tops = range(rows.start, rows.stop, ROWS)
    bands = [np.arange(top, min(top + ROWS, rows.stop)) for top in tops]
    return np.concatenate(each(lambda band: head.band(band).piece(columns), bands))


def pieces(columns: range, width: int) -> Iterator[range]:
    """Yield columns in pieces that end at multiples of a width."""
    start = columns.start
    while start < columns.stop:
        stop = min(columns.stop, (start // width + 1) * width)
        yield range(start, stop)
        start = stop
