"""How far does a head look, in tokens?"""

from typing import Any

from attention_atlas.measure.accumulate import RowMean
from attention_atlas.measure.definition import AT_LEAST_0, Measure
from attention_atlas.measure.row_block import RowBlock


def distance(block: RowBlock) -> Any:
    return block.mean_distance


MEASURE = Measure(
    "distance",
    "distance",
    "mean over rows with n ≥ 2 of Σⱼ w |i − j|",
    "Vig & Belinkov 2019, Analyzing the Structure of Attention",
    "shuffled",
    RowMean(distance, linear=True),
    square=True,
    bounds=AT_LEAST_0,
)
