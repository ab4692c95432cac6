"""What part of its layer's output does a head bring to the rows of a long input?

The shares of `contributions`, times the layer's heads as a page shows them, read in bands of rows
and pieces of columns. What the layer gives to a row needs every head of the layer; it is found for
the rows that are asked for, and then known for all its heads.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attention_atlas.store.contributions import given_to_rows
from attention_atlas.store.form import Ints
from attention_atlas.store.head_weights import WIDE, Band, HeadWeights, pieces
from attention_atlas.store.output import LayerProjection
from attention_atlas.store.products import Products
from attention_atlas.store.rows import Float32

_SIDE = 64  # of a product that stays on the calling thread: see `products`


class LayerGiven:
    """What a layer gives to each row of an input, in terms of its heads' values."""

    def __init__(
        self, heads: Sequence[HeadWeights], values: Float32, projection: LayerProjection
    ):  # values (G, M, E)
        self._heads, self._values, self._projection = heads, values, projection
        shape = len(heads), heads[0].n, values.shape[2]
        self._back = np.zeros(shape, np.float32)  # over the square of what the layer gives
        self._known = np.zeros(heads[0].n, bool)
        self._adding = threading.Lock()

    @property
    def heads(self) -> int:
        return len(self._heads)

    @property
    def bytes(self) -> int:
        return self._back.nbytes + sum(head.bytes for head in self._heads)

    def back(self, head: int, rows: Ints) -> Float32:
        """Return (R, E), whose products with a head's values are shares before its weights."""
        unknown = rows[~self._known[rows]]
        if unknown.size:
            found = self._find(unknown)
            with self._adding:
                self._back[:, unknown], self._known[unknown] = found, True
        return np.asarray(self._back[head, rows])

    def _find(self, rows: Ints) -> Float32:
        group = len(self._heads) // len(self._values)
        moved = np.stack([
            _moved(head.band(rows), self._values[number // group], len(rows))
            for number, head in enumerate(self._heads)
        ])  # fmt: skip  # (H, R, E)
        given = given_to_rows(moved, self._projection)
        size = np.where(given.squares > 0, given.squares, np.inf).astype(np.float32)
        return np.asarray(given.back / size[:, None])


def _moved(band: Band, values: Float32, rows: int) -> Float32:
    """Return what a head moves to the rows of a band, (R, E), not projected."""
    total = np.zeros((rows, values.shape[1]), np.float32)
    down = -(-rows // _SIDE)
    for columns in pieces(band.reach, WIDE):
        across = -(-len(columns) // _SIDE)
        weights = np.zeros((down * _SIDE, across * _SIDE), np.float32)
        weights[:rows, : len(columns)] = band.piece(columns)
        own = np.zeros((across * _SIDE, values.shape[1]), np.float32)
        own[: len(columns)] = values[columns.start : columns.stop]
        tiles = weights.reshape(down, _SIDE, across, _SIDE).swapaxes(1, 2)
        products = np.matmul(tiles, own.reshape(across, _SIDE, -1))  # (down, across, 64, E)
        total += products.sum(1).reshape(down * _SIDE, -1)[:rows]
    return total


class HeadShares:
    """The contributions (N, M) of one head, times the heads of its layer; they have signs."""

    def __init__(self, weights: HeadWeights, given: LayerGiven, head: int, values: Float32):
        # values (M, E) of the head
        self._weights, self._given, self._head = weights, given, head
        self.n, self.m = weights.n, weights.m
        self._back = np.zeros((self.n, values.shape[1]), np.float32)
        self._products = Products(self._back, values)

    @property
    def bytes(self) -> int:
        return self._weights.bytes + self._products.bytes + self._given.bytes

    def band(self, rows: Ints) -> "SharesBand":
        """Return some rows; what the layer gives to them is found first."""
        self._back[rows] = self._given.back(self._head, rows) * self._given.heads
        return SharesBand(self._weights.band(rows), self._products, rows)


@dataclass(frozen=True)
class SharesBand:
    """Some rows of a head's contributions; their columns are computed when they are read."""

    weights: Band
    products: Products
    rows: Ints

    @property
    def reach(self) -> range:
        return self.weights.reach

    def piece(self, columns: range) -> Float32:
        """Return the contributions (R, C) of some columns."""
        shares = self.products.piece(self.rows, columns)
        return np.asarray(shares * self.weights.piece(columns))
