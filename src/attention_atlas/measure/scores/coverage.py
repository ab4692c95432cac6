"""Over what share of the keys does a head spread its attention in all? 1 is even over all."""

from typing import Any

import numpy as np

from attention_atlas.measure.accumulate import Accumulator, State
from attention_atlas.measure.arrays import Floats, beside, namespace, numbers, zeros
from attention_atlas.measure.chance import ChanceBlock
from attention_atlas.measure.definition import SHARE, Measure
from attention_atlas.measure.row_block import RowBlock

DRAWN = 256  # keys whose attention is drawn, for chance


class Coverage(Accumulator):
    """The attention on each key, and how many rows see it."""

    def state(self, block: RowBlock) -> State:
        return all_keys(block, block.received), all_keys(block, block.seen.sum(0))

    def shuffled(self, chance: ChanceBlock) -> State:
        """Draw what each of DRAWN keys, evenly spaced, gets of each row: any of its weights.

        The entropy is a sum over keys, so its mean is that of shuffled rows, although the draws of
        one key do not depend on those of another.
        """
        block, dice = chance.block, chance.dice
        xp, (rows, width), count = block.xp, block.seen.shape, len(block.tokens.ids)
        step = -(-count // DRAWN)
        places = np.arange(step // 2, count, step)
        drawn = dice.random((rows, len(places)), np.float32)
        near = int(np.searchsorted(places, width))  # no row of the block sees the others
        picked = numbers(block.weights, step // 2, step // 2 + near * step, step)
        sees = block.seen[:, picked] & block.choosing[:, None]
        index = numbers(block.weights, rows)[:, None]
        chosen = _seen_key(block, beside(block.weights, drawn[:, :near]))  # (R, near)
        weights = block.weights[:, index, chosen]
        weights *= sees
        sums = xp.sum(weights, axis=1, dtype=xp.float64), sees.sum(0)
        return tuple(padded(values, len(places)) for values in sums)

    def value(self, state: State) -> Floats:
        received, seen = state
        total = received.sum(1, keepdims=True)
        shares = received / np.maximum(total, 1e-9)
        bits = -(shares * np.log(np.maximum(shares, 1e-12))).sum(1)
        return np.where(total[:, 0] > 0, np.exp(bits) / max(1, (seen > 0).sum()), np.nan)


def all_keys(block: RowBlock, values: Any) -> Any:
    """Add zeros for the keys after those of the block; returns (…, keys of the input)."""
    return padded(values, len(block.tokens.ids))


def padded(values: Any, length: int) -> Any:
    """Add zeros at the end of the last axis; returns (…, length)."""
    more = length - values.shape[-1]
    if not more:
        return values
    zero = zeros(values, (*values.shape[:-1], more))
    return namespace(values).concatenate([values, zero], axis=-1)


def _seen_key(block: RowBlock, drawn: Any) -> Any:
    """Turn numbers from 0 to 1, (R, K), into keys that the rows see; returns (R, K)."""
    xp = block.xp
    last = xp.clip(block.visible - 1, 0, None)[:, None]
    place = xp.minimum(xp.asarray(drawn * block.visible[:, None], dtype=xp.int64), last)
    if block.first_seen is not None:
        return xp.clip(block.first_seen[:, None] + place, None, block.seen.shape[1] - 1)
    columns = xp.where(block.seen)[1]  # those of the first row, then those of the second …
    starts = (block.visible.cumsum(0) - block.visible)[:, None]
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
