"""How much do patches look at class and register tokens?"""

from typing import Any

from attention_atlas.measure.accumulate import RowMean
from attention_atlas.measure.definition import Measure
from attention_atlas.measure.row_block import RowBlock


def patch_class(block: RowBlock) -> Any:
    return block.share(block.patch_rows[:, None] & block.keys.special)


MEASURE = Measure(
    "patch-class",
    "on class and register tokens",
    "mean over patches of Σ w on class and register tokens",
    "Darcet et al. 2024, Vision Transformers Need Registers",
    "shuffled",
    RowMean(patch_class, linear=True),
    needs="patches",
    square=True,
)
