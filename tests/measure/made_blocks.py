"""Rows made up at random, whole and cut into blocks."""

from dataclasses import replace
from typing import Any

import numpy as np

from attention_atlas.measure.row_block import Keys, RowBlock

HEADS = 2


def random_block(n: int, causal: bool, window: int, seed: int, dtype: Any = np.float32) -> RowBlock:
    """All rows of an input of n tokens: words, special tokens, punctuation and patches."""
    dice = np.random.default_rng(seed)
    seen = np.tri(n, dtype=bool) if causal else np.ones((n, n), bool)
    seen &= np.abs(np.subtract.outer(np.arange(n), np.arange(n))) < window
    weights = np.exp(dice.normal(0, 2, (HEADS, n, n))) * seen
    weights /= weights.sum(2, keepdims=True)
    query, key, value = (dice.normal(size=(HEADS, n, 4)).astype(dtype) for _ in range(3))
    marks = dice.random((2, n)) < 0.25
    ids = dice.integers(-1, 4, n)
    places = dice.integers(0, 3, (n, 3))
    places[marks[0] | (dice.random(n) < 0.3)] = -1  # special tokens and words are no patches
    keys = Keys(ids, marks[0], marks[1] & ~marks[0], places, key, value)
    return RowBlock(weights.astype(dtype), np.arange(n), seen, keys, True, query)


def cut(block: RowBlock, step: int) -> list[RowBlock]:
    """The same rows, `step` at a time."""
    assert block.query is not None
    return [
        replace(
            block, weights=block.weights[:, own], rows=block.rows[own], seen=block.seen[own],
            query=block.query[:, own],
        )
        for own in (slice(start, start + step) for start in range(0, len(block.rows), step))
    ]  # fmt: skip
