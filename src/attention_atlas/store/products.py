"""How are pieces of q kᵀ computed on the thread that asks?

A BLAS library splits a large product over threads of its own. When several of ours ask at once,
these threads wait for each other: 25 times as slow, measured on a busy two-core machine. Products
of at most 2^18 multiplications stay on the calling thread (OpenBLAS's own limit), so a piece is
computed as a grid of such products in one call. Keys are kept transposed in tiles, for which BLAS
has its fastest small product: twice as fast as q kᵀ of the same size.
"""

import numpy as np

from attention_atlas.store.form import Ints
from attention_atlas.store.rows import Float32

_LARGEST = 2**18  # multiplications of a product that is not split over threads
_ACROSS = 64  # keys of one product


class Products:
    """The dot products of some queries (N, D) with some keys (M, D)."""

    def __init__(self, query: Float32, key: Float32):
        count, width = key.shape
        padded = np.zeros((-(-count // _ACROSS) * _ACROSS, width), np.float32)
        padded[:count] = key
        tiles = padded.reshape(-1, _ACROSS, width).swapaxes(1, 2)
        self._query, self._keys = query, np.ascontiguousarray(tiles)  # (tiles, D, 64)
        most = max(1, _LARGEST // (_ACROSS * width))
        self._down = min(128, 2 ** (most.bit_length() - 1))  # queries of one product

    @property
    def bytes(self) -> int:
        return self._query.nbytes + self._keys.nbytes

    def piece(self, rows: Ints, columns: range) -> Float32:
        """Return the products (R, C) of some queries with a run of keys."""
        first, last = columns.start // _ACROSS, -(-columns.stop // _ACROSS)
        keys, width = self._keys[first:last], self._query.shape[1]
        query = np.zeros((-(-len(rows) // self._down) * self._down, width), np.float32)
        query[: len(rows)] = self._query[rows]
        out = np.empty((len(query), len(keys) * _ACROSS), np.float32)
        grid = out.reshape(-1, self._down, len(keys), _ACROSS).swapaxes(1, 2)
        np.matmul(query.reshape(-1, 1, self._down, width), keys[None], out=grid)
        left = columns.start - first * _ACROSS
        return out[: len(rows), left : left + len(columns)]
