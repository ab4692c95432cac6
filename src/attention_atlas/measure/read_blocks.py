"""How is an atlas read in blocks of rows, so that no input is ever whole in memory?

The vectors of one layer and shard are read once (`StoredAtlas.held_layer`); weights are recomputed
from them for a few rows at a time. All of `measure` reads weights here.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from attention_atlas.measure.row_block import Bools, Floats, Keys, RowBlock
from attention_atlas.measure.tokens import TokenTable
from attention_atlas.store.manifest import Layer
from attention_atlas.store.rows import StoredLayer

LARGEST = 1_000_000  # weights at once, a few megabytes
Rows = npt.NDArray[np.intp]


def read_rows(stored: StoredLayer, input: int, heads: range, rows: Rows) -> tuple[Floats, Bools]:
    """Read some rows; returns weights (H, R, M) and which keys any of the heads may see (R, M)."""
    own = np.arange(heads.start, heads.stop)
    return stored.weights(input, own, rows), stored.seen(input, own, rows)


def head_ranges(layer: Layer, keys: int, largest: int = LARGEST) -> Iterator[range]:
    """Yield heads of which one row fits into memory together: all of them, or whole groups."""
    size = layer.heads // layer.groups
    step = max(1, largest // max(1, keys) // size) * size
    for start in range(0, layer.heads, step):
        yield range(start, min(start + step, layer.heads))


def row_blocks(
    stored: StoredLayer, input: int, heads: range, tokens: TokenTable, largest: int = LARGEST
) -> Iterator[RowBlock]:
    """Yield all rows of an input for some heads, in order, at most `largest` weights at a time."""
    n, m = stored.size(input)
    keys, own = _keys(stored, input, heads, tokens), np.arange(heads.start, heads.stop)
    queries = stored.vectors("query", own, input) if stored.has("query") else None
    square = stored.layer.queries == stored.layer.keys
    step = max(1, largest // (len(heads) * max(1, m)))
    for start in range(0, n, step):
        rows = np.arange(start, min(start + step, n))
        query = None if queries is None else queries[:, rows]
        weights, seen = read_rows(stored, input, heads, rows)
        yield RowBlock(weights, rows, seen, keys, square, query)


def _keys(stored: StoredLayer, input: int, heads: range, tokens: TokenTable) -> Keys:
    layer = stored.layer
    size = layer.heads // layer.groups
    groups = np.arange(heads.start // size, (heads.stop - 1) // size + 1)

    def by_head(what: str) -> Floats | None:
        """Read (G, M, …) and repeat it for the heads of each group: (H, M, …)."""
        if not stored.has(what):
            return None
        return np.repeat(stored.vectors(what, groups, input), size, axis=0)

    return Keys(
        *tokens.of(input, layer.keys), tokens.places(input, layer.keys), by_head("key"),
        by_head("value"),
    )  # fmt: skip
