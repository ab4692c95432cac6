"""How much does a token look at earlier copies of itself?"""

import numpy as np

from attention_atlas.measure.accumulate import RowMean
from attention_atlas.measure.measure import SHARE, Measure
from attention_atlas.measure.row_block import Bools, Floats, RowBlock


def duplicate(block: RowBlock) -> Floats:
    return block.share(earlier_copies(block))


def earlier_copies(block: RowBlock) -> Bools:
    """(R, M): earlier keys of the row's own token; special ones and those without id have none."""
    ids = np.where(block.keys.special, -1, block.keys.ids)
    own = ids[block.rows, None]
    earlier = np.arange(len(ids)) < block.rows[:, None]
    return np.asarray((own == ids) & (own >= 0) & earlier)


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
