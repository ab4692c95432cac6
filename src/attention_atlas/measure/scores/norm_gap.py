"""How much longer are a head's queries than its keys? 0 is equal, 1 is twice, −1 is half."""

import numpy as np

from attention_atlas.measure.accumulate import Accumulator, State
from attention_atlas.measure.arrays import Floats, lengths
from attention_atlas.measure.definition import Measure
from attention_atlas.measure.row_block import RowBlock


class NormGap(Accumulator):
    """Sums over rows of the length of the query and the mean length of the keys."""

    def state(self, block: RowBlock) -> State:
        xp, rows = block.xp, len(block.rows)
        queries = xp.sum(lengths(block.query), axis=1, dtype=xp.float64)
        return queries, rows * block.tokens.mean_length, xp.asarray(rows, dtype=xp.float64)

    def value(self, state: State) -> Floats:
        queries, keys, rows = state
        return np.asarray(np.log2(np.maximum(queries / rows, 1e-9) / np.maximum(keys / rows, 1e-9)))


MEASURE = Measure(
    "norm-gap",
    "query/key norm gap",
    "log₂ of mean |q| / mean |k|",
    "Yeh et al. 2023, AttentionViz",
    "zero",
    NormGap(),
    needs="vectors",
)
