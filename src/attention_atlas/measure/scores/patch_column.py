"""How much does a patch look along its own column?"""

from typing import Any

from attention_atlas.measure.accumulate import RowMean
from attention_atlas.measure.definition import Measure
from attention_atlas.measure.row_block import RowBlock


def patch_column(block: RowBlock) -> Any:
    down, right = block.steps[..., 0], block.steps[..., 1]
    return block.share(block.beside & (right == 0) & (down != 0))


MEASURE = Measure(
    "patch-column",
    "along the column",
    "mean over patches of Σ w on the other patches of the same column",
    "Yeh et al. 2023, AttentionViz",
    "shuffled",
    RowMean(patch_column, linear=True),
    needs="patches",
    square=True,
)
