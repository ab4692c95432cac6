"""What is the largest weight of a head in rows that have a choice?

A causal model's first row sees one key, so its weight is 1 whatever the head does.
"""

from typing import Any

import numpy as np

from attention_atlas.measure.accumulate import RowMaximum
from attention_atlas.measure.definition import SHARE, Measure
from attention_atlas.measure.row_block import RowBlock


def importance_chosen(block: RowBlock) -> Any:
    return block.xp.where(block.choosing, block.largest, np.nan)


MEASURE = Measure(
    "importance-chosen",
    "importance, rows with a choice",
    "max over rows with n ≥ 2 and keys of w",
    "ours: the study's importance without rows that see one key",
    "even",
    RowMaximum(importance_chosen),
    bounds=SHARE,
)
