"""Which layers' weights were read last? They are kept, for what is asked next of the same input.

A person who turns from weights to what is moved, or opens one head of those on screen, asks for the
same softmaxes again.
"""

import threading
from collections.abc import Sequence
from contextlib import nullcontext

import numpy as np
from cachetools import LRUCache

from attention_atlas.page.answers.subject import Weighted
from attention_atlas.store.rows import Float32, indexes
from attention_atlas.store.turns import Turns

KEPT = 64_000_000  # bytes of weights that are kept

Layer = tuple[int, int, str | None]  # input, layer, tower


class RecentLayers:
    """Whole layers of weights, float32 (H, N, M), that cannot be written to."""

    def __init__(self) -> None:
        self._kept: LRUCache[Layer, Float32] = LRUCache(KEPT, getsizeof=lambda rows: rows.nbytes)
        self._lock, self._turns = threading.Lock(), Turns()

    def rows(
        self,
        source: Weighted,
        input: int,
        layer: int,
        tower: str | None = None,
        heads: Sequence[int] | None = None,
        rows: Sequence[int] | None = None,
        columns: Sequence[int] | None = None,
    ) -> Float32:
        """Return weights (H, R, C) of a source, from its layers that are kept where they are."""
        key = input, layer, tower
        parts = zip((heads, rows, columns), source.shape(input, layer, tower), strict=True)
        whole = all(_is_all(part, count) for part, count in parts)
        # A page asks for links and sinks at once: both read the same layers.
        with self._turns.of(key) if whole else nullcontext():
            with self._lock:
                kept = self._kept.get(key)
            if kept is not None:
                return _part(kept, heads, rows, columns)
            found = source.rows(input, layer, tower, heads, rows, columns)
            if whole and found.nbytes <= KEPT:
                found.flags.writeable = False
                with self._lock:
                    self._kept[key] = found
        return found


def _part(
    layer: Float32,
    heads: Sequence[int] | None,
    rows: Sequence[int] | None,
    columns: Sequence[int] | None,
) -> Float32:
    """Return some heads, rows and columns of a layer; all of them without a copy."""
    for axis, (asked, name) in enumerate(((heads, "heads"), (rows, "rows"), (columns, "columns"))):
        if not _is_all(asked, layer.shape[axis]):
            layer = np.take(layer, indexes(asked, layer.shape[axis], name), axis=axis)
    return layer


def _is_all(asked: Sequence[int] | None, count: int) -> bool:
    """Tell whether numbers are all there are, in their order."""
    if asked is None or (isinstance(asked, range) and asked == range(count)):
        return True
    return len(asked) == count and np.array_equal(asked, np.arange(count))
