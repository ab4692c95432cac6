"""What are the rows of a layer when weights become what is moved, or contributions?

The one reader of both, as `StoredAtlas.rows` is of weights: some heads, rows and columns. Both need
the whole layer: rows are read for all heads, a few million numbers at a time, and what the layer
gives is kept for the inputs and layers that were read last.
"""

import threading
from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
from cachetools import LRUCache

from attention_atlas.names.errors import PickError
from attention_atlas.store.contributions import (
    CONTRIBUTION,
    MOVED,
    Given,
    contributions,
    layer_output,
    norms,
)
from attention_atlas.store.head_weights import without_keys
from attention_atlas.store.manifest import Tower
from attention_atlas.store.output import Output
from attention_atlas.store.rows import LARGEST, Float32, indexes
from attention_atlas.store.turns import Turns

KEPT = 64_000_000  # bytes of layers' outputs that are kept
HOW = (MOVED, CONTRIBUTION)
Key = tuple[int, str, int, int]  # input, tower, layer, rows


class Moving(Protocol):
    """An atlas, as far as it is needed here."""

    @property
    def towers(self) -> tuple[Tower, ...]: ...
    @property
    def output(self) -> Output: ...
    def shape(self, input: int, layer: int, tower: str | None = None) -> tuple[int, int, int]: ...
    def layer_values(self, input: int, layer: int, tower: str | None = None) -> Float32: ...
    def rows(
        self,
        input: int,
        layer: int,
        tower: str | None = None,
        heads: Sequence[int] | None = None,
        rows: Sequence[int] | None = None,
        columns: Sequence[int] | None = None,
    ) -> Float32: ...


class MovedRows:
    """Rows of what the heads of an atlas move.

    how      "moved": ‖w f(v)‖; "contribution": signed shares of the layer's output
    without  keys that are taken out: the weights are then softmaxes over the keys that are left
    """

    def __init__(self, atlas: Moving, how: str = CONTRIBUTION, without: Sequence[int] = ()):
        if how not in HOW:
            raise PickError(f"{how[:40]!r} is nothing that heads move; give {' or '.join(HOW)}")
        self.atlas, self.how, self.without = atlas, how, np.array(sorted(without), np.intp)
        self._kept: LRUCache[Key, Given] = LRUCache(KEPT, getsizeof=lambda given: given.nbytes)
        self._lock = threading.Lock()  # a server reads in several threads
        self._turns = Turns()

    def rows(
        self,
        input: int,
        layer: int,
        tower: str | None = None,
        heads: Sequence[int] | None = None,
        rows: Sequence[int] | None = None,
        columns: Sequence[int] | None = None,
        by_heads: bool = False,
    ) -> Float32:
        """Return (H, R, C), float32; the arguments are those of `StoredAtlas.rows`.

        by_heads  contributions times the layer's heads, as a page shows them
        """
        count, n, m = self.atlas.shape(input, layer, tower)
        wanted, asked = indexes(heads, count, "heads"), indexes(rows, n, "rows")
        places = None if columns is None else indexes(columns, m, "columns")
        values = self.atlas.layer_values(input, layer, tower)  # (G, M, E)
        name = tower or self.atlas.towers[0].name
        projection = self.atlas.output.projection(name, layer)
        group = count // len(values)
        parts = []
        for block in _blocks(asked, count, m):
            if self.how == MOVED:
                weights = self._weights(input, layer, tower, wanted.tolist(), block.tolist())
                part = norms(weights, values, projection, wanted.tolist(), group)
            else:
                given, whole = self._given(input, layer, name, block, values)
                if whole is None:
                    weights = self._weights(input, layer, tower, wanted.tolist(), block.tolist())
                else:
                    weights = whole if heads is None else whole[wanted]
                times = count if by_heads else 1
                part = contributions(weights, values, given, wanted.tolist(), group, times)
            parts.append(part if places is None else part[:, :, places])
        empty = np.zeros((len(wanted), 0, m if places is None else len(places)), np.float32)
        if len(parts) == 1:
            return parts[0]
        return np.concatenate(parts, axis=1) if parts else empty

    def foresee(self, input: int, layer: int, tower: str) -> None:
        """Compute what a layer gives to all rows of an input, for contributions asked for later."""
        count, n, m = self.atlas.shape(input, layer, tower)
        values = self.atlas.layer_values(input, layer, tower)
        for block in _blocks(np.arange(n), count, m):
            self._given(input, layer, tower, block, values)

    def _weights(
        self, input: int, layer: int, tower: str | None, heads: Sequence[int] | None,
        rows: Sequence[int] | None,
    ) -> Float32:  # fmt: skip
        weights = self.atlas.rows(input, layer, tower, heads, rows)
        if not self.without.size:
            return weights
        home = next(found for found in self.atlas.towers if not tower or found.name == tower)
        about = home.find(layer)
        sink = about is not None and about.sink
        return np.stack([without_keys(head, self.without, sink) for head in weights])

    def _given(
        self, input: int, layer: int, tower: str, rows: np.ndarray, values: Float32
    ) -> tuple[Given, Float32 | None]:
        """Return what the layer gives to these rows, and all its weights if they were read."""
        key = (input, tower, layer, hash(rows.tobytes()))
        with self._turns.of(key):
            with self._lock:
                given = self._kept.get(key)
            if given is not None:
                return given, None
            whole = np.array_equal(rows, np.arange(self.atlas.shape(input, layer, tower)[1]))
            weights = self._weights(input, layer, tower, None, None if whole else rows.tolist())
            given = layer_output(weights, values, self.atlas.output.projection(tower, layer))
            if given.nbytes <= KEPT:
                with self._lock:
                    self._kept[key] = given
        return given, weights


def _blocks(rows: np.ndarray, heads: int, m: int) -> Iterator[np.ndarray]:
    """Yield rows that fit into memory together, for all heads of a layer."""
    tall = max(1, LARGEST // max(1, heads * m))
    for first in range(0, len(rows), tall):
        yield rows[first : first + tall]
