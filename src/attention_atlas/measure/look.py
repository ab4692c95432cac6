"""What does a measure get to see?

The heads of one layer on one input: their weights, who may see whom, what the tokens are and, where
they were kept, the vectors. Axes: H heads, N rows that look, M keys that are looked at.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Look:
    weights: Floats  # (H, N, M)
    seen: Bools  # (N, M)
    ids: npt.NDArray[np.int64]  # (M,) of the keys; −1: none
    special: Bools  # (M,)
    punctuation: Bools  # (M,)
    square: bool = True  # rows and keys are the same tokens
    query: Floats | None = None  # (H, N, D)
    key: Floats | None = None  # (H, M, D)
    value: Floats | None = None  # (H, M, E)
    place: npt.NDArray[np.int64] | None = None  # (M, 3): picture, row, column; -1: no patch

    @cached_property
    def keys(self) -> npt.NDArray[np.int64]:
        """(N,): how many keys each row may see."""
        return np.asarray(self.seen.sum(1), np.int64)

    @cached_property
    def choosing(self) -> Bools:
        """(N,): rows that see at least two keys; the others have nothing to choose."""
        return np.asarray(self.keys > 1)

    @cached_property
    def distance(self) -> Floats:
        """(N, M): |i − j|."""
        n, m = self.seen.shape
        return np.abs(np.arange(n, dtype=np.float32)[:, None] - np.arange(m, dtype=np.float32))

    @cached_property
    def patches(self) -> Bools:
        """(M,): tokens that show a part of a picture."""
        assert self.place is not None
        return np.asarray((self.place[:, 1:] >= 0).all(1))

    @cached_property
    def steps(self) -> npt.NDArray[np.int64]:
        """(N, M, 2): rows down and columns to the right from one patch to another."""
        assert self.place is not None
        cells = self.place[:, 1:]
        return np.asarray(cells[None] - cells[:, None])

    @cached_property
    def beside(self) -> Bools:
        """(N, M): both are patches, and of the same picture."""
        assert self.place is not None
        image = self.place[:, 0]
        both = self.patches[:, None] & self.patches[None]
        return np.asarray(both & (image[:, None] == image[None]))

    def shuffled(self, dice: np.random.Generator) -> "Look":
        """The weights of each row dealt out at random among the keys it may see."""
        order = np.where(self.seen, dice.random(self.seen.shape, np.float32), np.float32(2))
        order = order.argsort(1)  # visible keys first, in random order
        places = np.where(self.seen, 0, 1).argsort(1, kind="stable")  # visible keys, in order
        dealt = np.empty_like(self.weights)
        rows = np.arange(len(order))[:, None]
        dealt[:, rows, places] = self.weights[:, rows, order]
        return replace(self, weights=dealt)

    def even(self) -> "Look":
        """One head that spreads its attention evenly over the keys it may see."""
        return replace(self, weights=(self.seen / np.maximum(self.keys, 1)[:, None])[None])


def nothing(look: Look) -> Floats:
    """(H,): no answer, where an input has none to give."""
    return np.full(len(look.weights), np.nan)


def row_mean(per_row: Floats, rows: Bools) -> Floats:
    """(H,): mean of (H, N) over some rows, NaN where there are none."""
    if not rows.any():
        return np.full(len(per_row), np.nan)
    return np.asarray(per_row[:, rows].mean(1))


def share_of(look: Look, pairs: Bools) -> Floats:
    """(H,): weight on some pairs (N, M), mean over the rows that choose and see one of them."""
    pairs = pairs & look.seen
    return row_mean(np.einsum("hnm,nm->hn", look.weights, pairs), look.choosing & pairs.any(1))
