"""How widely does a head spread its attention? 1 is even, 0 is one key a row."""

from typing import Any

from attention_atlas.measure.accumulate import RowMean
from attention_atlas.measure.arrays import inner
from attention_atlas.measure.definition import SHARE, Measure
from attention_atlas.measure.row_block import RowBlock


def entropy(block: RowBlock) -> Any:
    xp = block.xp
    most = xp.log(xp.asarray(xp.clip(block.visible, 2, None), dtype=block.weights.dtype))
    if block.sums is not None:
        return block.sums.entropy / most
    logs = xp.clip(block.weights, 1e-12, None)
    xp.log(logs, out=logs)
    return -inner(block.weights, logs) / most


MEASURE = Measure(
    "entropy",
    "entropy",
    "mean over rows with n ≥ 2 of −Σⱼ w log w / log n",
    "Clark et al. 2019, What Does BERT Look At?",
    "even",
    RowMean(entropy),
    bounds=SHARE,
)
