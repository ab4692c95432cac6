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


def weights(
    query: Floats,  # (H, rows, D)
    key: Floats,  # (G, m, D)
    *,
    scale: float,
    softcap: float | None = None,
    sink: Floats | None = None,  # (H,)
    form: Form = FULL,
    rows: npt.NDArray[np.intp] | None = None,  # which of the n rows `query` holds; None: all
    n: int | None = None,
) -> npt.NDArray[np.float32]:
    """(H, rows, m) float32."""
    heads, groups, m = query.shape[0], key.shape[0], key.shape[1]
    n = query.shape[1] if n is None else n
    shared = np.repeat(key.astype(np.float32), heads // groups, axis=0)  # (H, m, D)
    logits = np.matmul(query.astype(np.float32), shared.swapaxes(1, 2)) * np.float32(scale)
    if softcap is not None:
        logits = np.float32(softcap) * np.tanh(logits / np.float32(softcap))
    bias = form.added(n, m, rows)
    if bias is not None:
        logits = logits + bias.astype(np.float32)
    seen = form.visible(n, m, rows)
    logits = np.where(seen, logits, -np.inf)
    nothing = ~seen.any(axis=-1, keepdims=True)  # (H or 1, rows, 1)
    logits = np.where(nothing, np.float32(0), logits)

    top = logits.max(axis=-1, keepdims=True)
    if sink is not None:
        top = np.maximum(top, sink.astype(np.float32)[:, None, None])
    grown = np.exp(logits - top)
    total = grown.sum(axis=-1, keepdims=True)
    if sink is not None:
        total = total + np.exp(sink.astype(np.float32)[:, None, None] - top)
    return np.asarray(grown / total, dtype=np.float32)
