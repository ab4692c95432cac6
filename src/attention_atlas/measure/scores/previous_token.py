"""How much does a head look one token back? The first token is left out: nothing is before it."""

from typing import Any

from attention_atlas.measure.accumulate import RowMean
from attention_atlas.measure.definition import SHARE, Measure
from attention_atlas.measure.row_block import RowBlock


def previous_token(block: RowBlock) -> Any:
    return block.at(-1)


MEASURE = Measure(
    "previous",
    "one back",
    "mean over rows with n ≥ 2 that see key i − 1 of w on it",
    "Voita et al. 2019, positional heads",
    "shuffled",
    RowMean(previous_token, linear=True),
    square=True,
    bounds=SHARE,
)
