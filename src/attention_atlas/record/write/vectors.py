"""Whose vectors does an atlas keep: those of all inputs, of a sample of inputs, or of none?

The vectors of a sample are those of whole inputs, drawn by the seed until they have so many tokens,
so that every example is whole. The first input and those of the receipt are always among them.
"""

from collections.abc import Sequence

import numpy as np

from attention_atlas.record.write.corpus import Corpus
from attention_atlas.record.write.options import Capturing, sample_size


def draw_inputs(
    corpus: Corpus, capturing: Capturing, first: Sequence[int]
) -> tuple[int, ...] | None:
    """Draw the inputs whose vectors are kept; return their numbers in order, None for all.

    first  inputs that a sample has in any case
    """
    size = sample_size(capturing.vectors)
    if size is None:
        return None
    if not size:
        return ()
    order = np.random.default_rng(capturing.seed).permutation(len(corpus.given)).tolist()
    kept: dict[int, None] = {}
    tokens = 0
    for number in dict.fromkeys([0, *first, *order]):
        if tokens >= size and number not in first:
            break
        kept[number] = None
        item = corpus.encode(number)
        tokens += capturing.generate + sum(len(stream) for stream in item.streams.values())
    return tuple(sorted(kept))
