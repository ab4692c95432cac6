"""Are the weights read from disk those that the model's own vectors gave while it ran?

A long input has too many weights to keep until its atlas is written. So of some sampled rows the
strongest weights of each head are kept, as JSON, and compared with the same weights of the atlas.
"""

from typing import Any

import numpy as np
from torch import Tensor

from attention_atlas.record.prove.spot_check import real_rows
from attention_atlas.record.watch.call import Sample
from attention_atlas.store.reader import StoredAtlas

EVERY = 4  # of the sampled rows, so few are kept
Kept = dict[str, Any]  # rows (R,), keys (R, H, K) and weights (R, H, K) of one layer of one input


def strongest(sample: Sample, place: int, queries: Tensor | None, keys: Tensor | None) -> Kept:
    """Return the strongest weights of sequence `place` of a sample, numbered without padding.

    queries, keys  (B, N) and (B, M) bool: which places are not padding; None: all
    """
    assert sample.strongest is not None and sample.strongest_keys is not None
    rows, seen, weights = (
        part[place, ::EVERY].cpu()
        for part in (sample.rows, sample.strongest_keys, sample.strongest)
    )
    if queries is not None:
        real = real_rows(sample, queries)[place, ::EVERY].cpu()
        rows, seen, weights = rows[real], seen[real], weights[real]
        rows = queries[place].cpu().cumsum(0)[rows] - 1
    if keys is not None:
        seen = (keys[place].cpu().cumsum(0)[seen] - 1).clamp_min(0)
    return {"rows": rows.tolist(), "keys": seen.tolist(), "weights": weights.tolist()}


def stored_error(atlas: StoredAtlas, number: int, layer: tuple[str, int], kept: Kept) -> float:
    """Return the largest difference between kept weights of a layer and those of the atlas."""
    if not kept["rows"]:
        return 0.0
    tower, layer_number = layer
    weights = atlas.rows(number, layer_number, tower, rows=kept["rows"])  # (H, R, M)
    keys = np.asarray(kept["keys"]).transpose(1, 0, 2)  # (H, R, K)
    stored = np.take_along_axis(weights, keys, axis=2).astype(np.float64)
    return float(np.abs(stored - np.asarray(kept["weights"]).transpose(1, 0, 2)).max())
