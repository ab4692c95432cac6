"""How much does a head look at delimiters: special tokens after the first, and punctuation?"""

from typing import Any

import numpy as np

from attention_atlas.measure.accumulate import RowMean
from attention_atlas.measure.definition import SHARE, Measure
from attention_atlas.measure.row_block import RowBlock


def delimiter(block: RowBlock) -> Any:
    marks = (block.keys.special | block.keys.punctuation) & (block.columns > 0)
    sees = (block.seen & marks).any(1)
    return block.xp.where(sees, block.total(marks), np.nan)


MEASURE = Measure(
    "delimiter",
    "on delimiters",
    "mean over rows that see one of Σ w on special tokens after the first and on punctuation",
    "Clark et al. 2019, What Does BERT Look At?",
    "shuffled",
    RowMean(delimiter, linear=True),
    bounds=SHARE,
)
