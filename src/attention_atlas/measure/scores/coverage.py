"""Over what share of the keys does a head spread its attention in all? 1 is even over all."""

import numpy as np

from attention_atlas.measure.accumulate import Accumulator, State
from attention_atlas.measure.definition import SHARE, Measure
from attention_atlas.measure.row_block import Floats, RowBlock


class Coverage(Accumulator):
    """The attention on each key, and how many rows see it."""

    def state(self, block: RowBlock) -> State:
        received = np.matmul(block.choosing.astype(block.weights.dtype), block.weights)  # (H, M)
        return received.astype(np.float64), block.seen.sum(0)

    def value(self, state: State) -> Floats:
        received, seen = state
        total = received.sum(1, keepdims=True)
        shares = received / np.maximum(total, 1e-9)
        bits = -(shares * np.log(np.maximum(shares, 1e-12))).sum(1)
        return np.where(total[:, 0] > 0, np.exp(bits) / (seen > 0).sum(), np.nan)


MEASURE = Measure(
    "coverage",
    "coverage",
    "exp(entropy of Σᵢ w over rows with n ≥ 2, as shares of keys) / number of keys",
    "after the coverage of Tu et al. 2016; perplexity in place of counts",
    "shuffled",
    Coverage(),
    bounds=SHARE,
)
