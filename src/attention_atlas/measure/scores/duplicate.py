"""How much does a token look at earlier copies of itself?"""

import numpy as np

from attention_atlas.measure.accumulate import RowMean
from attention_atlas.measure.definition import SHARE, Measure
from attention_atlas.measure.row_block import Bools, Floats, RowBlock


def duplicate(block: RowBlock) -> Floats:
    return block.share(earlier_copies(block))


def earlier_copies(block: RowBlock) -> Bools:
    """Find earlier keys with the row's token id; returns (R, M). Special tokens have none."""
    ids = np.where(block.keys.special, -1, block.keys.ids)
    row_ids = ids[block.rows, None]
    earlier = np.arange(len(ids)) < block.rows[:, None]
    return np.asarray((row_ids == ids) & (row_ids >= 0) & earlier)


MEASURE = Measure(
    "duplicate",
    "on earlier copies",
    "mean over rows whose token came before of Σ w on its earlier copies",
    "Wang et al. 2022, Interpretability in the Wild",
    "shuffled",
    RowMean(duplicate),
    square=True,
    bounds=SHARE,
)
