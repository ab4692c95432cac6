"""How much does a patch look along its own row?"""

import numpy as np

from attention_atlas.measure.accumulate import RowMean
from attention_atlas.measure.definition import Measure
from attention_atlas.measure.row_block import Floats, RowBlock


def patch_row(block: RowBlock) -> Floats:
    down, right = np.moveaxis(block.steps, 2, 0)
    return block.share(block.beside & (down == 0) & (right != 0))


MEASURE = Measure(
    "patch-row",
    "along the row",
    "mean over patches of Σ w on the other patches of the same row",
    "Yeh et al. 2023, AttentionViz",
    "shuffled",
    RowMean(patch_row),
    needs="patches",
    square=True,
)
