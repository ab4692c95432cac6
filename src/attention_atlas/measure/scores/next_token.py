"""How much does a head look one token ahead? Causal heads cannot, and give no answer."""

from typing import Any

from attention_atlas.measure.accumulate import RowMean
from attention_atlas.measure.definition import SHARE, Measure
from attention_atlas.measure.row_block import RowBlock


def next_token(block: RowBlock) -> Any:
    return block.at(1)


MEASURE = Measure(
    "next",
    "one ahead",
    "mean over rows with n ≥ 2 that see key i + 1 of w on it",
    "Voita et al. 2019, positional heads",
    "shuffled",
    RowMean(next_token, linear=True),
    square=True,
    bounds=SHARE,
)
