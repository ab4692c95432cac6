"""How much of the attention goes elsewhere once the length of what is moved counts?"""

import numpy as np

from attention_atlas.measure.look import Floats, Look, row_mean
from attention_atlas.measure.measure import SHARE, Measure


def value_shift(look: Look) -> Floats:
    assert look.value is not None
    moved = look.weights * np.linalg.norm(look.value, axis=2)[:, None, :]
    moved = moved / np.maximum(moved.sum(2, keepdims=True), 1e-12)
    plain = look.weights / np.maximum(look.weights.sum(2, keepdims=True), 1e-12)
    return row_mean(np.abs(moved - plain).sum(2) / 2, look.choosing)


MEASURE = Measure(
    "value-shift",
    "moved by value norms",
    "mean over rows with n ≥ 2 of ½ Σⱼ |w‖v‖ / Σₖ w‖v‖ − w|",
    "after Kobayashi et al. 2020, Attention is Not Only a Weight; before the output projection",
    "shuffled",
    value_shift,
    needs="values",
    bounds=SHARE,
)
