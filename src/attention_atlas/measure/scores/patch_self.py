"""How much does a patch look at itself?"""

from typing import Any

import numpy as np

from attention_atlas.measure.accumulate import RowMean
from attention_atlas.measure.definition import Measure
from attention_atlas.measure.row_block import RowBlock


def patch_self(block: RowBlock) -> Any:
    return block.xp.where(block.patch_rows, block.at(0), np.nan)


MEASURE = Measure(
    "patch-self",
    "patch on itself",
    "mean over patches of w on the patch itself",
    "Yeh et al. 2023, AttentionViz",
    "shuffled",
    RowMean(patch_self, linear=True),
    needs="patches",
    square=True,
)
