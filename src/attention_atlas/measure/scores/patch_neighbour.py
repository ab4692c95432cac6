"""How much does a patch look at the eight patches around it?"""

from typing import Any

from attention_atlas.measure.accumulate import RowMean
from attention_atlas.measure.definition import Measure
from attention_atlas.measure.row_block import RowBlock


def patch_neighbour(block: RowBlock) -> Any:
    return block.share(block.beside & (block.xp.amax(block.xp.abs(block.steps), axis=2) == 1))


MEASURE = Measure(
    "patch-neighbour",
    "on neighbour patches",
    "mean over patches of Σ w on the patches one step away, across corners too",
    "Yeh et al. 2023, AttentionViz",
    "shuffled",
    RowMean(patch_neighbour, linear=True),
    needs="patches",
    square=True,
)
