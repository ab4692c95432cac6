"""What is left of an input's rows when some keys are taken out?

Each row becomes a softmax over the keys that are left, and over the head's own sink if it has one:
the same as in a page without sinks. A row that sees no other key sees nothing.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from attention_atlas.measure.arrays import beside
from attention_atlas.measure.row_block import Keys, RowBlock
from attention_atlas.store.form import Ints


def set_aside(blocks: Iterable[RowBlock], keys: Ints, sink: bool) -> Iterator[RowBlock]:
    """Yield the blocks of an input without some keys.

    sink  the heads have sinks of their own, which take part in the softmax
    """
    tokens: Keys | None = None
    for block in blocks:
        if not len(keys):
            yield block
            continue
        if tokens is None:  # once, so that all blocks share what is computed of it
            kept = np.ones(len(block.tokens.ids), bool)
            kept[keys] = False
            tokens = replace(block.tokens, kept=beside(block.weights, kept))
        yield _without(block, tokens, sink)


def _without(block: RowBlock, tokens: Keys, sink: bool) -> RowBlock:
    xp, kept = block.xp, tokens.kept[: block.seen.shape[1]]  # type: ignore[index]
    left = block.weights * kept
    rest = left.sum(2)
    if sink:
        rest = rest + xp.clip(1 - block.mass, 0, None)
    left /= xp.where(rest > 0, rest, 1.0)[:, :, None]
    return replace(
        block, weights=left, seen=block.seen & kept, tokens=tokens, whole=0, first_seen=None
    )
