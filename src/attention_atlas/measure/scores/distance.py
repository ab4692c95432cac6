"""How far does a head look, in tokens?"""

import numpy as np

from attention_atlas.measure.accumulate import RowMean
from attention_atlas.measure.definition import AT_LEAST_0, Measure
from attention_atlas.measure.row_block import Floats, RowBlock


def distance(block: RowBlock) -> Floats:
    return np.asarray(np.einsum("hrm,rm->hr", block.weights, block.distance))


MEASURE = Measure(
    "distance",
    "distance",
    "mean over rows with n ≥ 2 of Σⱼ w |i − j|",
    "Vig & Belinkov 2019, Analyzing the Structure of Attention",
    "shuffled",
    RowMean(distance),
    square=True,
    bounds=AT_LEAST_0,
)
