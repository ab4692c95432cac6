"""What is the largest weight of a head? The study's importance; 1 for every causal head."""

import numpy as np

from attention_atlas.measure.accumulate import RowMaximum
from attention_atlas.measure.definition import SHARE, Measure
from attention_atlas.measure.row_block import Floats, RowBlock


def importance(block: RowBlock) -> Floats:
    return np.asarray(block.weights.max(2))


MEASURE = Measure(
    "importance",
    "importance",
    "max over rows and keys of w",
    "Guo, Interpretability analysis in transformers based on attention visualization, (2)",
    "even",
    RowMaximum(importance),
    bounds=SHARE,
)
