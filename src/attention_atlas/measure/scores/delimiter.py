"""How much does a head look at delimiters: special tokens after the first, and punctuation?"""

import numpy as np

from attention_atlas.measure.accumulate import RowMean
from attention_atlas.measure.definition import SHARE, Measure
from attention_atlas.measure.row_block import Floats, RowBlock


def delimiter(block: RowBlock) -> Floats:
    marks = block.keys.special | block.keys.punctuation
    marks[0] = False
    return np.where(block.seen[:, marks].any(1), block.weights[:, :, marks].sum(2), np.nan)


MEASURE = Measure(
    "delimiter",
    "on delimiters",
    "mean over rows that see one of Σ w on special tokens after the first and on punctuation",
    "Clark et al. 2019, What Does BERT Look At?",
    "shuffled",
    RowMean(delimiter),
    bounds=SHARE,
)
