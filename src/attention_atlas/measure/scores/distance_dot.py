"""Does a query lie near the keys it looks at? −1 is perfect: distance falls as q·k grows."""

import numpy as np

from attention_atlas.measure.look import Floats, Look, nothing
from attention_atlas.measure.measure import Measure


def distance_dot(look: Look) -> Floats:
    assert look.query is not None and look.key is not None
    if look.seen.sum() < 3:
        return nothing(look)
    dots = np.einsum("hnd,hmd->hnm", look.query, look.key, optimize=True)
    squares = [np.square(one).sum(2) for one in (look.query, look.key)]
    away = np.sqrt(np.maximum(squares[0][:, :, None] + squares[1][:, None] - 2 * dots, 0))
    return correlation(dots[:, look.seen], away[:, look.seen])


def correlation(a: Floats, b: Floats) -> Floats:
    """(H,): Pearson's, over the last axis of (H, pairs)."""
    a, b = (one - one.mean(1, keepdims=True) for one in (a, b))
    size = np.sqrt((a * a).sum(1) * (b * b).sum(1))
    return np.where(size > 1e-12, (a * b).sum(1) / np.maximum(size, 1e-12), np.nan)


MEASURE = Measure(
    "distance-dot",
    "distance–dot correlation",
    "Pearson correlation of |q − k| and q·k over the pairs seen",
    "Yeh et al. 2023, AttentionViz",
    "zero",
    distance_dot,
    needs="vectors",
    bounds=(-1.0, 1.0),
)
