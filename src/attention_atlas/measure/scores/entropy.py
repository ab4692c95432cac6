"""How widely does a head spread its attention? 1 is even, 0 is one key a row."""

import numpy as np

from attention_atlas.measure.look import Floats, Look, row_mean
from attention_atlas.measure.measure import SHARE, Measure


def entropy(look: Look) -> Floats:
    logs = np.log(np.maximum(look.weights, np.float32(1e-12)))
    bits = -np.einsum("hnm,hnm->hn", look.weights, logs)
    return row_mean(bits / np.log(np.maximum(look.keys, 2)), look.choosing)


MEASURE = Measure(
    "entropy",
    "entropy",
    "mean over rows with n ≥ 2 of −Σⱼ w log w / log n",
    "Clark et al. 2019, What Does BERT Look At?",
    "even",
    entropy,
    bounds=SHARE,
)
