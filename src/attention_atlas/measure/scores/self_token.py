"""How much does each token look at itself?"""

from typing import Any

from attention_atlas.measure.accumulate import RowMean
from attention_atlas.measure.definition import SHARE, Measure
from attention_atlas.measure.row_block import RowBlock


def self_token(block: RowBlock) -> Any:
    return block.at(0)


MEASURE = Measure(
    "self",
    "on itself",
    "mean over rows with n ≥ 2 that see key i of w on it",
    "Kovaleva et al. 2019, diagonal heads",
    "shuffled",
    RowMean(self_token, linear=True),
    square=True,
    bounds=SHARE,
)
