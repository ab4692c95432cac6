"""How is an atlas read in blocks of rows, so that no input is ever whole in memory?

The vectors of one layer and shard are read once (`StoredAtlas.held_layer`); weights are recomputed
from them for a few rows at a time.
"""

from collections.abc import Iterator

import numpy as np

from attention_atlas.measure.row_block import Floats, Keys, RowBlock
from attention_atlas.measure.tokens import TokenTable
from attention_atlas.store.form import Ints
from attention_atlas.store.manifest import Layer
from attention_atlas.store.rows import StoredLayer

LARGEST = 1_000_000  # weights at once, a few megabytes


def head_ranges(layer: Layer, keys: int, largest: int = LARGEST) -> Iterator[Ints]:
    """Yield the numbers of heads whose rows fit into memory together: all, or some whole groups."""
    size = layer.heads // layer.groups
    step = max(1, largest // max(1, keys) // size) * size
    for start in range(0, layer.heads, step):
        yield np.arange(start, min(start + step, layer.heads))


def row_blocks(
    stored: StoredLayer, input: int, heads: Ints, tokens: TokenTable, largest: int = LARGEST
) -> Iterator[RowBlock]:
    """Yield all rows of an input in order, in blocks of at most `largest` weights."""
    n, m = stored.size(input)
    keys, square = _keys(stored, input, heads, tokens), stored.layer.queries == stored.layer.keys
    query = stored.vectors("query", heads, input) if stored.has("query") else None
    step = max(1, largest // (len(heads) * max(1, m)))
    for start in range(0, n, step):
        rows = np.arange(start, min(start + step, n))
        yield RowBlock(
            stored.weights(input, heads, rows), rows, stored.seen(input, heads, rows), keys, square,
            None if query is None else query[:, start : start + step],
        )  # fmt: skip


def _keys(stored: StoredLayer, input: int, heads: Ints, tokens: TokenTable) -> Keys:
    size = stored.layer.heads // stored.layer.groups
    groups, group_of = np.unique(heads // size, return_inverse=True)

    def by_head(what: str) -> Floats | None:
        """Read (G, M, …) and repeat it for the heads of each group; returns (H, M, …)."""
        return stored.vectors(what, groups, input)[group_of] if stored.has(what) else None

    stream = stored.layer.keys
    return Keys(
        *tokens.of(input, stream), tokens.places(input, stream), by_head("key"), by_head("value")
    )
