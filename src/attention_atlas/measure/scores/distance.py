"""How far does a head look, in tokens?"""

import numpy as np

from attention_atlas.measure.look import Floats, Look, row_mean
from attention_atlas.measure.measure import AT_LEAST_0, Measure


def distance(look: Look) -> Floats:
    return row_mean(np.einsum("hnm,nm->hn", look.weights, look.distance), look.choosing)


MEASURE = Measure(
    "distance",
    "distance",
    "mean over rows with n ≥ 2 of Σⱼ w |i − j|",
    "Vig & Belinkov 2019, Analyzing the Structure of Attention",
    "shuffled",
    distance,
    square=True,
    bounds=AT_LEAST_0,
)
