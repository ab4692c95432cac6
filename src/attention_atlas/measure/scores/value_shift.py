"""How much of the attention moves to other keys when weights are scaled by value norms?"""

import numpy as np

from attention_atlas.measure.accumulate import RowMean
from attention_atlas.measure.definition import SHARE, Measure
from attention_atlas.measure.row_block import Floats, RowBlock


def value_shift(block: RowBlock) -> Floats:
    moved = block.weights * block.keys.value_lengths[:, None, :]
    moved /= np.maximum(moved.sum(2, keepdims=True), 1e-12)
    moved -= block.weights / np.maximum(block.weights.sum(2, keepdims=True), 1e-12)
    return np.asarray(np.abs(moved).sum(2) / 2)


MEASURE = Measure(
    "value-shift",
    "moved by value norms",
    "mean over rows with n ≥ 2 of ½ Σⱼ |w‖v‖ / Σₖ w‖v‖ − w|",
    "after Kobayashi et al. 2020, Attention is Not Only a Weight; before the output projection",
    "shuffled",
    RowMean(value_shift),
    needs="values",
    bounds=SHARE,
)
