"""How large is the largest weight of a row, on average?"""

from typing import Any

from attention_atlas.measure.accumulate import RowMean
from attention_atlas.measure.definition import SHARE, Measure
from attention_atlas.measure.row_block import RowBlock


def confidence(block: RowBlock) -> Any:
    return block.largest


MEASURE = Measure(
    "confidence",
    "confidence",
    "mean over rows with n ≥ 2 of maxⱼ w",
    "Voita et al. 2019, Analyzing Multi-Head Self-Attention",
    "even",
    RowMean(confidence),
    bounds=SHARE,
)
