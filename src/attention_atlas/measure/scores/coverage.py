"""Over what share of the keys does a head spread its attention in all? 1 is even over all."""

from typing import Any

import numpy as np

from attention_atlas.measure.accumulate import Accumulator, State
from attention_atlas.measure.arrays import Floats, beside, zeros
from attention_atlas.measure.definition import SHARE, Measure
from attention_atlas.measure.row_block import RowBlock

DRAWN = 256  # keys whose attention is drawn, for chance


class Coverage(Accumulator):
    """The attention on each key, and how many rows see it."""

    def state(self, block: RowBlock) -> State:
        choosing = block.xp.asarray(block.choosing, dtype=block.weights.dtype)
        return all_keys(block, choosing @ block.weights), all_keys(block, block.seen.sum(0))

    def shuffled(self, block: RowBlock, even: RowBlock, dice: np.random.Generator) -> State:
        """Draw what each of DRAWN keys, evenly spaced, gets of each row: any of its weights.

        The entropy is a sum over keys, so its mean is that of shuffled rows, although the draws of
        one key do not depend on those of another.
        """
        xp, count = block.xp, len(block.tokens.ids)
        step = -(-count // DRAWN)
        places = beside(block.weights, np.arange(step // 2, count, step))
        drawn = dice.random((len(block.rows), len(places)), np.float32)
        sees = all_keys(block, block.seen)[:, places] & block.choosing[:, None]  # (R, K)
        index = beside(block.weights, np.arange(len(block.rows)))[:, None]
        weights = block.weights[:, index, _seen_key(block, beside(block.weights, drawn))]
        weights *= sees
        return xp.sum(weights, axis=1, dtype=xp.float64), sees.sum(0)

    def value(self, state: State) -> Floats:
        received, seen = state
        total = received.sum(1, keepdims=True)
        shares = received / np.maximum(total, 1e-9)
        bits = -(shares * np.log(np.maximum(shares, 1e-12))).sum(1)
        return np.where(total[:, 0] > 0, np.exp(bits) / max(1, (seen > 0).sum()), np.nan)


def all_keys(block: RowBlock, values: Any) -> Any:
    """Add zeros for the keys after those of the block; returns (…, keys of the input)."""
    more = len(block.tokens.ids) - values.shape[-1]
    if not more:
        return values
    return block.xp.concatenate([values, zeros(values, (*values.shape[:-1], more))], axis=-1)


def _seen_key(block: RowBlock, drawn: Any) -> Any:
    """Turn numbers from 0 to 1, (R, K), into keys that the rows see; returns (R, K)."""
    xp = block.xp
    columns = xp.where(block.seen)[1]  # those of the first row, then those of the second …
    starts = (block.visible.cumsum(0) - block.visible)[:, None]
    last = xp.clip(block.visible - 1, 0, None)[:, None]
    place = xp.minimum(xp.asarray(drawn * block.visible[:, None], dtype=xp.int64), last)
    return columns[xp.clip(starts + place, None, len(columns) - 1)]


MEASURE = Measure(
    "coverage",
    "coverage",
    "exp(entropy of Σᵢ w over rows with n ≥ 2, as shares of keys) / number of keys",
    "after the coverage of Tu et al. 2016; perplexity in place of counts",
    "shuffled",
    Coverage(),
    bounds=SHARE,
)
