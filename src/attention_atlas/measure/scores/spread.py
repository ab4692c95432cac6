"""How much does the distance vary within a row?"""

import numpy as np

from attention_atlas.measure.look import Floats, Look, row_mean
from attention_atlas.measure.measure import AT_LEAST_0, Measure


def spread(look: Look) -> Floats:
    mean = np.einsum("hnm,nm->hn", look.weights, look.distance)
    square = np.einsum("hnm,nm->hn", look.weights, look.distance**2)
    mass = np.maximum(look.weights.sum(2), 1e-9)
    return row_mean(np.sqrt(np.maximum(square / mass - (mean / mass) ** 2, 0)), look.choosing)


MEASURE = Measure(
    "spread",
    "spread of distance",
    "mean over rows with n ≥ 2 of the standard deviation of |i − j| under w",
    "goes with distance, Vig & Belinkov 2019",
    "shuffled",
    spread,
    square=True,
    bounds=AT_LEAST_0,
)
