"""What do several tokens look at together, and what looks at them?

The page shows the same numbers for a set of picked tokens.
"""

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from attention_atlas.names.errors import PickError
from attention_atlas.names.head import Head
from attention_atlas.store.reader import StoredAtlas

Side = Literal["query", "key"]
Together = Literal["mean", "sum"]


def check_set(tokens: Sequence[int], count: int, side: str, how: str) -> list[int]:
    """Return the positions of a set, each once and in order; refuse what is not there."""
    if side not in get_args(Side) or how not in get_args(Together):
        raise PickError(
            f"side is {side!r} and how is {how!r}; there is query and key, and mean and sum"
        )
    positions = sorted({int(token) for token in tokens})
    if not positions:
        raise PickError("no token is picked; give the positions of one or more tokens")
    beyond = [position for position in positions if not 0 <= position < count]
    if beyond:
        raise PickError(f"there is no token {beyond[0]}; this input has 0 to {count - 1}")
    return positions


def attention_of(
    atlas: StoredAtlas, tokens: Sequence[int], input: int = 0, head: str | Head = "L0H0",
    side: Side = "query", how: Together = "mean",
) -> npt.NDArray[np.float32]:  # fmt: skip
    """Return what a set of tokens looks at (M,), or what looks at a set (N,), summed or averaged.

    tokens  positions in the input
    side    "query": the set looks; "key": it is looked at
    """
    asked = Head.parse(head)
    layer, tower = atlas.layer_of(asked).layer, asked.tower or None
    _, n, m = atlas.shape(input, layer, tower)
    positions = check_set(tokens, n if side == "query" else m, side, how)
    rows, columns = (positions, None) if side == "query" else (None, positions)
    weights = atlas.rows(input, layer, tower, [asked.head], rows, columns)[0]  # (R, C)
    across = 0 if side == "query" else 1
    taken = weights.astype(np.float64)
    return np.asarray(taken.mean(across) if how == "mean" else taken.sum(across), np.float32)
