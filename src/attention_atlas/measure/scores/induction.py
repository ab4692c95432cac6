"""How much does a token look at what followed its earlier copies?"""

import numpy as np

from attention_atlas.measure.accumulate import RowMean
from attention_atlas.measure.definition import SHARE, Measure
from attention_atlas.measure.row_block import Floats, RowBlock
from attention_atlas.measure.scores.duplicate import earlier_copies


def induction(block: RowBlock) -> Floats:
    after = np.zeros_like(block.seen)
    after[:, 1:] = earlier_copies(block)[:, :-1]
    earlier = np.arange(after.shape[1]) < block.rows[:, None]  # what followed must be earlier too
    return block.share(after & earlier)


MEASURE = Measure(
    "induction",
    "after earlier copies",
    "mean over rows whose token came before of Σ w on the tokens that followed its earlier copies",
    "Olsson et al. 2022, In-context Learning and Induction Heads",
    "shuffled",
    RowMean(induction),
    square=True,
    bounds=SHARE,
)
