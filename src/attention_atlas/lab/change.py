"""How much does the attention of each head change between two runs of one input?

The total variation of two rows is half the sum of the absolute differences of their weights: the
share of attention that moved elsewhere, from 0 to 1. What a sink takes counts as one more key.
"""

from collections.abc import Collection

import numpy as np
import numpy.typing as npt

from attention_atlas.names.head import Head
from attention_atlas.store.reader import StoredAtlas

MOST = 8_000_000  # weights of a layer that are compared; beyond that, evenly spaced rows


def total_variation(
    before: npt.NDArray[np.float32], after: npt.NDArray[np.float32]
) -> npt.NDArray[np.float64]:
    """Return the mean total variation of the rows of each head, (H,), from weights (H, N, M)."""
    first, second = before.astype(np.float64), after.astype(np.float64)
    moved = np.abs(first - second).sum(-1)
    sink = np.abs(first.sum(-1) - second.sum(-1))
    return np.asarray((moved + sink).mean(-1) / 2)


def changes(
    before: StoredAtlas, after: StoredAtlas, unchanged: Collection[tuple[str, int]] = ()
) -> dict[str, float]:
    """Return the change of every head, by name, between two atlases of the same one input.

    unchanged  layers, by tower and number, that are known to be the same in both
    """
    table: dict[str, float] = {}
    several = len(before.towers) > 1
    for tower in before.towers:
        for layer in tower.layers:
            prefix = tower.name if several else ""
            names = [str(Head(prefix, layer.layer, head)) for head in range(layer.heads)]
            if (tower.name, layer.layer) in unchanged:
                table.update(dict.fromkeys(names, 0.0))
                continue
            heads, n, m = before.shape(0, layer.layer, tower.name)
            rows = _rows(n, max(1, MOST // (heads * m)))
            first, second = (
                atlas.rows(0, layer.layer, tower.name, None, rows) for atlas in (before, after)
            )
            table.update(zip(names, total_variation(first, second).tolist(), strict=True))
    return table


def _rows(n: int, most: int) -> list[int] | None:
    """Return evenly spaced rows, or None for all."""
    return None if n <= most else np.linspace(0, n - 1, most).round().astype(int).tolist()
