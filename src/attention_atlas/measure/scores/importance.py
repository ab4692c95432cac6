"""What is the largest weight of a head? The study's importance; 1 for every causal head."""

import numpy as np

from attention_atlas.measure.look import Floats, Look
from attention_atlas.measure.measure import SHARE, Measure


def importance(look: Look) -> Floats:
    return np.asarray(look.weights.max((1, 2)))


MEASURE = Measure(
    "importance",
    "importance",
    "max over rows and keys of w",
    "Guo, Interpretability analysis in transformers based on attention visualization, (2)",
    "even",
    importance,
    bounds=SHARE,
)
