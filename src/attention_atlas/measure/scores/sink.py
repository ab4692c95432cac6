"""How much of its attention does a head put on sinks, wherever they are? See `store/sinks.py`."""

import numpy as np

from attention_atlas.measure.accumulate import Accumulator, State
from attention_atlas.measure.arrays import Floats
from attention_atlas.measure.definition import SHARE, Measure
from attention_atlas.measure.row_block import RowBlock
from attention_atlas.measure.scores.coverage import all_keys
from attention_atlas.store.sinks import are_sinks


class OnSinks(Accumulator):
    """The attention that each key gets, and what it would get from even rows."""

    def state(self, block: RowBlock) -> State:
        xp = block.xp
        choosing = xp.asarray(block.choosing, dtype=block.weights.dtype)
        visible = xp.clip(xp.asarray(block.visible, dtype=block.weights.dtype), 1, None)
        seen = xp.asarray(block.seen, dtype=block.weights.dtype)
        even = (choosing / visible) @ seen
        return all_keys(block, block.received), all_keys(block, even)

    def value(self, state: State) -> Floats:
        received, even = state
        total = received.sum(1)
        on_sinks = np.where(are_sinks(received, even), received, 0).sum(1)
        return np.where(total > 0, on_sinks / np.maximum(total, 1e-9), np.nan)


MEASURE = Measure(
    "sink",
    "attention on sinks",
    "share of Σᵢ w, over rows with n ≥ 2, on keys with ≥ 5 % of it, ≥ 5 × the median key and "
    "≥ 1.5 × what even rows give it",
    "after Gu et al. 2024 (text) and Darcet et al. 2023 (patches); the rule is ours",
    "even",
    OnSinks(),
    bounds=SHARE,
)
