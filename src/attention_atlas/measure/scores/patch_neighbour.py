"""How much does a patch look at the eight patches around it?"""

import numpy as np

from attention_atlas.measure.accumulate import RowMean
from attention_atlas.measure.definition import Measure
from attention_atlas.measure.row_block import Floats, RowBlock


def patch_neighbour(block: RowBlock) -> Floats:
    return block.share(block.beside & (np.abs(block.steps).max(2) == 1))


MEASURE = Measure(
    "patch-neighbour",
    "on neighbour patches",
    "mean over patches of Σ w on the patches one step away, across corners too",
    "Yeh et al. 2023, AttentionViz",
    "shuffled",
    RowMean(patch_neighbour),
    needs="patches",
    square=True,
)
