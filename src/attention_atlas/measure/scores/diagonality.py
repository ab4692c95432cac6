"""How close to the diagonal does attention stay? 1 is on it, 0 is as far away as can be."""

import numpy as np

from attention_atlas.measure.accumulate import RowMean
from attention_atlas.measure.definition import SHARE, Measure
from attention_atlas.measure.row_block import Floats, RowBlock


def diagonality(block: RowBlock) -> Floats:
    farthest = (block.distance * block.seen).max(1)  # (R,)
    mean = np.einsum("hrm,rm->hr", block.weights, block.distance)
    return np.where(farthest > 0, 1 - mean / np.maximum(farthest, 1), np.nan)


MEASURE = Measure(
    "diagonality",
    "diagonality",
    "mean over rows with n ≥ 2 of 1 − Σⱼ w |i − j| / max |i − j| over the keys seen",
    "Zhang et al. 2021, On the Usefulness of Self-Attention for Speech Recognition",
    "shuffled",
    RowMean(diagonality),
    square=True,
    bounds=SHARE,
)
