"""How much longer are a head's queries than its keys? 0 is alike, 1 is twice, −1 is half."""

import numpy as np

from attention_atlas.measure.look import Floats, Look
from attention_atlas.measure.measure import Measure


def norm_gap(look: Look) -> Floats:
    assert look.query is not None and look.key is not None
    query, key = (np.linalg.norm(one, axis=2).mean(1) for one in (look.query, look.key))
    return np.asarray(np.log2(np.maximum(query, 1e-9) / np.maximum(key, 1e-9)))


MEASURE = Measure(
    "norm-gap",
    "query/key norm gap",
    "log₂ of mean |q| / mean |k|",
    "Yeh et al. 2023, AttentionViz",
    "zero",
    norm_gap,
    needs="vectors",
)
