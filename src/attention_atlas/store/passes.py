"""How is a whole atlas gone through once, in bounded memory?

A shard and layer at a time: its vectors are read once, and each input's weights are recomputed from
them, a few heads together where the input is long. For one head ask
`StoredAtlas.weights`.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from attention_atlas.store.manifest import Layer, Tower
from attention_atlas.store.reader import StoredAtlas
from attention_atlas.store.rows import LARGEST, Float32, StoredLayer


@dataclass(frozen=True)
class Piece:
    """What some heads of a layer did on one input; vectors are None where they were not kept."""

    input: int
    heads: range
    weights: Float32  # (H, N, M)
    seen: npt.NDArray[np.bool_]  # (N, M): keys that any of these heads may look at
    query: Float32 | None  # (H, N, D)
    key: Float32 | None  # (G', M, D): of the groups that these heads read
    value: Float32 | None  # (G', M, E)


def pieces(
    atlas: StoredAtlas, shard: int, tower: Tower, layer: Layer, only: set[int] | None = None
) -> Iterator[Piece]:
    """Yields every input of one shard (or those in `only`), in order, in one layer."""
    stored = atlas.held_layer(shard, tower, layer)
    for number in stored.inputs():
        if only is None or number in only:
            n, m = stored.size(number)
            for heads in _slices(layer, n * m):
                yield _piece(stored, number, heads)


def _slices(layer: Layer, pairs: int) -> Iterator[range]:
    """Yields heads that fit into memory together: whole groups, all of them if they do."""
    group = layer.heads // layer.groups
    step = max(1, LARGEST // max(1, pairs) // group) * group
    for start in range(0, layer.heads, step):
        yield range(start, min(start + step, layer.heads))


def _piece(stored: StoredLayer, input: int, heads: range) -> Piece:
    own = np.arange(heads.start, heads.stop)
    groups = np.unique(own // (stored.layer.heads // stored.layer.groups))
    vectors = [
        stored.vectors(what, entries, input) if stored.has(what) else None
        for what, entries in (("query", own), ("key", groups), ("value", groups))
    ]
    return Piece(input, heads, stored.weights(input, own), stored.seen(input, own), *vectors)
