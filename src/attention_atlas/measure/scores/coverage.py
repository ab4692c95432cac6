"""Over how many of the keys does a head's attention go in all? 1 is over all alike."""

import numpy as np

from attention_atlas.measure.look import Floats, Look, nothing
from attention_atlas.measure.measure import SHARE, Measure


def coverage(look: Look) -> Floats:
    if not look.choosing.any():
        return nothing(look)
    got = look.weights[:, look.choosing].sum(1)  # (H, M)
    got = got / np.maximum(got.sum(1, keepdims=True), 1e-9)
    bits = -(got * np.log(np.maximum(got, 1e-12))).sum(1)
    return np.asarray(np.exp(bits) / look.seen.any(0).sum())


MEASURE = Measure(
    "coverage",
    "coverage",
    "exp(entropy of Σᵢ w over rows with n ≥ 2, as shares of keys) / number of keys",
    "after the coverage of Tu et al. 2016; perplexity in place of counts",
    "shuffled",
    coverage,
    bounds=SHARE,
)
