"""Which weights do these queries, keys and form give?

The one definition of attention that an atlas is read with, in plain NumPy and float32:

    logits  = scale · q kᵀ
    logits  = cap · tanh(logits / cap)            where the layer has a soft cap
    weights = softmax(logits + bias over the keys seen, and the sink if there is one)

A sink takes part in the softmax and is then dropped, so its rows sum to less than one. A row that
may see nothing at all is even over its keys, which is what the model's own masks come to.
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
    """Returns the weights (H, N, M) of N queries, which are the rows that `form` speaks of."""
    return _normalised(_logits(query, key, scale, softcap, form), sink)


def _logits(query: Floats, key: Floats, scale: float, softcap: float | None, form: Form) -> Float32:
    """Returns what the softmax is taken of, (H, N, M): −inf at keys that a row may not see.

    Each entry depends on its own query and key alone, so that a row cut by columns needs no more
    than its logits there and the sum over its whole row.
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
    """Returns the softmax over the last axis, of which a sink takes its share."""
    top = logits.max(axis=-1, keepdims=True)
    if sink is not None:
        top = np.maximum(top, sink.astype(np.float32)[:, None, None])
    grown = np.exp(logits - top)
    total = grown.sum(axis=-1, keepdims=True)
    if sink is not None:
        total = total + np.exp(sink.astype(np.float32)[:, None, None] - top)
    return np.asarray(grown / total, dtype=np.float32)
