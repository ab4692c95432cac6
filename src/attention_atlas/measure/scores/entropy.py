"""How widely does a head spread its attention? 1 is even, 0 is one key a row."""

import numpy as np

from attention_atlas.measure.accumulate import RowMean
from attention_atlas.measure.definition import SHARE, Measure
from attention_atlas.measure.row_block import Floats, RowBlock


def entropy(block: RowBlock) -> Floats:
    logs = np.log(np.maximum(block.weights, np.float32(1e-12)))
    bits = -np.einsum("hrm,hrm->hr", block.weights, logs)
    return np.asarray(bits / np.log(np.maximum(block.visible, 2)))


MEASURE = Measure(
    "entropy",
    "entropy",
    "mean over rows with n ≥ 2 of −Σⱼ w log w / log n",
    "Clark et al. 2019, What Does BERT Look At?",
    "even",
    RowMean(entropy),
    bounds=SHARE,
)
