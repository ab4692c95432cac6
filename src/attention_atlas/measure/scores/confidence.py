"""How large is the largest weight of a row, on average?"""

import numpy as np

from attention_atlas.measure.accumulate import RowMean
from attention_atlas.measure.definition import SHARE, Measure
from attention_atlas.measure.row_block import Floats, RowBlock


def confidence(block: RowBlock) -> Floats:
    return np.asarray(block.weights.max(2))


MEASURE = Measure(
    "confidence",
    "confidence",
    "mean over rows with n ≥ 2 of maxⱼ w",
    "Voita et al. 2019, Analyzing Multi-Head Self-Attention",
    "even",
    RowMean(confidence),
    bounds=SHARE,
)
