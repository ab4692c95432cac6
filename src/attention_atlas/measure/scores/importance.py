"""What is the largest weight of a head? The study's importance; 1 for every causal head."""

from typing import Any

from attention_atlas.measure.accumulate import RowMaximum
from attention_atlas.measure.definition import SHARE, Measure
from attention_atlas.measure.row_block import RowBlock


def importance(block: RowBlock) -> Any:
    return block.largest


MEASURE = Measure(
    "importance",
    "importance",
    "max over rows and keys of w",
    "Guo, Interpretability analysis in transformers based on attention visualization, (2)",
    "even",
    RowMaximum(importance),
    bounds=SHARE,
)
