"""What weights do these queries, keys and form give?

This is the only definition of attention for reading an atlas, in plain NumPy and float32:

    logits  = scale · q kᵀ
    logits  = cap · tanh(logits / cap)            where the layer has a soft cap
    weights = softmax(logits + bias over the keys seen, and the sink if there is one)

A sink takes part in the softmax and is then dropped, so rows sum to less than one. A row that sees
no key has equal weights for all keys, as with the model's own masks.
"""

import numpy as np
import numpy.typing as npt

from attention_atlas.store.form import FULL, Floats, Form

Float32 = npt.NDArray[np.float32]


def weights(
    query: Floats,  # (H, N, D)
    key: Floats,  # (G, M, D)
    *,
    scale: float,
    softcap: float | None = None,
    sink: Floats | None = None,  # (H,)
    form: Form = FULL,
) -> Float32:
    """Return the weights (H, N, M) of N queries, which are the rows that `form` covers."""
    return _normalised(_logits(query, key, scale, softcap, form), sink)


def _logits(query: Floats, key: Floats, scale: float, softcap: float | None, form: Form) -> Float32:
    """Return the logits that enter the softmax, (H, N, M): −inf at keys that a row may not see.

    Each logit depends on its query and key alone, so some columns of a row need only their own
    logits and the sum over the whole row.
    """
    (heads, n, _), (groups, m, _) = query.shape, key.shape
    shared = key.astype(np.float32)
    if groups < heads:
        shared = np.repeat(shared, heads // groups, axis=0)  # (H, M, D)
    logits = np.matmul(query.astype(np.float32), shared.swapaxes(1, 2)) * np.float32(scale)
    if softcap is not None:
        logits = np.float32(softcap) * np.tanh(logits / np.float32(softcap))
    bias = form.added(n, m)
    if bias is not None:
        logits = logits + bias.astype(np.float32)
    seen = form.visible(n, m)
    nothing = ~seen.any(axis=-1, keepdims=True)  # (H or 1, N, 1)
    return np.where(nothing, np.float32(0), np.where(seen, logits, np.float32(-np.inf)))


def _normalised(logits: Float32, sink: Floats | None) -> Float32:
    """Return the softmax over the last axis, in which a sink takes part, (H, N, M)."""
    top = logits.max(axis=-1, keepdims=True)
    if sink is not None:
        top = np.maximum(top, sink.astype(np.float32)[:, None, None])
    grown = np.exp(logits - top)
    total = grown.sum(axis=-1, keepdims=True)
    if sink is not None:
        total = total + np.exp(sink.astype(np.float32)[:, None, None] - top)
    return np.asarray(grown / total, dtype=np.float32)
