"""How much does the distance vary within a row?"""

from typing import Any

from attention_atlas.measure.accumulate import RowMean
from attention_atlas.measure.definition import AT_LEAST_0, Measure
from attention_atlas.measure.row_block import RowBlock


def spread(block: RowBlock) -> Any:
    xp = block.xp
    mass = xp.clip(block.mass, 1e-9, None)
    square = block.mean_square_distance / mass
    return xp.sqrt(xp.clip(square - (block.mean_distance / mass) ** 2, 0, None))


MEASURE = Measure(
    "spread",
    "spread of distance",
    "mean over rows with n ≥ 2 of the standard deviation of |i − j| under w",
    "as for distance, Vig & Belinkov 2019",
    "shuffled",
    RowMean(spread),
    square=True,
    bounds=AT_LEAST_0,
)
