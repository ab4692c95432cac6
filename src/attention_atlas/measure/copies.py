"""How much attention goes to earlier copies of a token, or to what stands `shift` after them?"""

import numpy as np

from attention_atlas.measure.look import Floats, Look, nothing, row_mean


def copies(look: Look, shift: int) -> Floats:
    """(H,): over rows with such a key; special tokens and tokens without an id have no copies."""
    ids = np.where(look.special, -1, look.ids)
    n = len(ids)
    same = (ids[:, None] == ids[None, :]) & (ids[:, None] >= 0)
    target = np.zeros((n, n), bool)
    target[:, shift:] = np.tril(same, -1)[:, : n - shift]
    target = np.tril(target, -1) & look.seen  # what followed must have come before, too
    rows = target.any(1) & look.choosing
    if not rows.any():
        return nothing(look)
    return row_mean(np.einsum("hnm,nm->hn", look.weights, target), rows)
