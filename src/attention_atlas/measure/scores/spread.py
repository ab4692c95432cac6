"""How much does the distance vary within a row?"""

import numpy as np

from attention_atlas.measure.accumulate import RowMean
from attention_atlas.measure.definition import AT_LEAST_0, Measure
from attention_atlas.measure.row_block import Floats, RowBlock


def spread(block: RowBlock) -> Floats:
    mean = np.einsum("hrm,rm->hr", block.weights, block.distance)
    square = np.einsum("hrm,rm->hr", block.weights, block.distance**2)
    mass = np.maximum(block.weights.sum(2), 1e-9)
    return np.asarray(np.sqrt(np.maximum(square / mass - (mean / mass) ** 2, 0)))


MEASURE = Measure(
    "spread",
    "spread of distance",
    "mean over rows with n ≥ 2 of the standard deviation of |i − j| under w",
    "as for distance, Vig & Belinkov 2019",
    "shuffled",
    RowMean(spread),
    square=True,
    bounds=AT_LEAST_0,
)
