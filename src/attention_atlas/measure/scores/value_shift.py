"""How much of the attention moves to other keys when weights are scaled by value norms?"""

from typing import Any

from attention_atlas.measure.accumulate import RowMean
from attention_atlas.measure.arrays import inner
from attention_atlas.measure.definition import SHARE, Measure
from attention_atlas.measure.row_block import RowBlock


def value_shift(block: RowBlock) -> Any:
    xp = block.xp
    if block.sums is not None:
        return block.sums.grown / xp.clip(block.mass, 1e-12, None) - 1
    lengths = block.tokens.value_lengths[:, : block.seen.shape[1]]  # (H, M)
    scaled = xp.clip(xp.einsum("hrm,hm->hr", block.weights, lengths), 1e-12, None)
    mass = xp.clip(block.mass, 1e-12, None)
    # Both rows sum to one, so half of all differences is what the weights that grow gain.
    factor = lengths[:, None] * (mass / scaled)[:, :, None]
    xp.clip(factor, 1, None, out=factor)
    return inner(block.weights, factor) / mass - 1


MEASURE = Measure(
    "value-shift",
    "moved by value norms",
    "mean over rows with n ≥ 2 of ½ Σⱼ |w‖v‖ / Σₖ w‖v‖ − w|",
    "after Kobayashi et al. 2020, Attention is Not Only a Weight; before the output projection",
    "shuffled",
    RowMean(value_shift),
    needs="values",
    bounds=SHARE,
)
