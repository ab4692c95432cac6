"""How much does a patch look along its own row?"""

from typing import Any

from attention_atlas.measure.accumulate import RowMean
from attention_atlas.measure.definition import Measure
from attention_atlas.measure.row_block import RowBlock


def patch_row(block: RowBlock) -> Any:
    down, right = block.steps[..., 0], block.steps[..., 1]
    return block.share(block.beside & (down == 0) & (right != 0))


MEASURE = Measure(
    "patch-row",
    "along the row",
    "mean over patches of Σ w on the other patches of the same row",
    "Yeh et al. 2023, AttentionViz",
    "shuffled",
    RowMean(patch_row, linear=True),
    needs="patches",
    square=True,
)
