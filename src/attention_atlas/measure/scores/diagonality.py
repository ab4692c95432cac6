"""How close to the diagonal does attention stay? 1 is on it, 0 is as far away as can be."""

from typing import Any

import numpy as np

from attention_atlas.measure.accumulate import RowMean
from attention_atlas.measure.definition import SHARE, Measure
from attention_atlas.measure.row_block import RowBlock


def diagonality(block: RowBlock) -> Any:
    xp = block.xp
    farthest = xp.amax(block.distance * block.seen, axis=1)  # (R,)
    close = 1 - block.mean_distance / xp.clip(farthest, 1, None)
    return xp.where(farthest > 0, close, np.nan)


MEASURE = Measure(
    "diagonality",
    "diagonality",
    "mean over rows with n ≥ 2 of 1 − Σⱼ w |i − j| / max |i − j| over the keys seen",
    "Zhang et al. 2021, On the Usefulness of Self-Attention for Speech Recognition",
    "shuffled",
    RowMean(diagonality, linear=True),
    square=True,
    bounds=SHARE,
)
