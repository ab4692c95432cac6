"""How much does a head look at the first token?"""

from typing import Any

import numpy as np

from attention_atlas.measure.accumulate import RowMean
from attention_atlas.measure.definition import SHARE, Measure
from attention_atlas.measure.row_block import RowBlock


def first_token(block: RowBlock) -> Any:
    return block.xp.where(block.seen[:, 0], block.weights[:, :, 0], np.nan)


MEASURE = Measure(
    "first-token",
    "on first token",
    "mean over rows with n ≥ 2 of w on the first token",
    "Vig & Belinkov 2019; Xiao et al. 2023, attention sinks",
    "shuffled",
    RowMean(first_token, linear=True),
    bounds=SHARE,
)
