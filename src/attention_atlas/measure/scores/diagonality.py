"""How close to the diagonal does attention stay? 1 is on it, 0 is as far away as can be."""

import numpy as np

from attention_atlas.measure.look import Floats, Look, row_mean
from attention_atlas.measure.measure import SHARE, Measure


def diagonality(look: Look) -> Floats:
    farthest = (look.distance * look.seen).max(1)  # (N,)
    mean = np.einsum("hnm,nm->hn", look.weights, look.distance)
    return row_mean(1 - mean / np.maximum(farthest, 1), look.choosing & (farthest > 0))


MEASURE = Measure(
    "diagonality",
    "diagonality",
    "mean over rows with n ≥ 2 of 1 − Σⱼ w |i − j| / max |i − j| over the keys seen",
    "Zhang et al. 2021, On the Usefulness of Self-Attention for Speech Recognition",
    "shuffled",
    diagonality,
    square=True,
    bounds=SHARE,
)
