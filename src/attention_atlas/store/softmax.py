"""What weights do these queries, keys and form give?

This is the only definition of attention for reading an atlas, in plain NumPy and float32 (measures
bring torch's functions of the same names):

    logits  = scale · q kᵀ
    logits  = cap · tanh(logits / cap)            where the layer has a soft cap
    weights = softmax(logits + bias over the keys seen, and the sink if there is one)

A sink takes part in the softmax and is then dropped, so rows sum to less than one. A row that sees
no key has equal weights for all keys, as with the model's own masks.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from attention_atlas.store.form import FULL, Floats, Form
from attention_atlas.store.half import as_float32

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
    logits = _logits(query, key, scale, softcap, form)
    return np.asarray(normalised(logits, None if sink is None else sink.astype(np.float32)))


def _logits(query: Floats, key: Floats, scale: float, softcap: float | None, form: Form) -> Float32:
    """Return the logits that enter the softmax, (H, N, M): −inf at keys that a row may not see.

    Each logit depends on its query and key alone, so some columns of a row need only their own
    logits and the sum over the whole row.
    """
    (heads, n, width), (groups, m, _) = query.shape, key.shape
    # The heads of a group as more rows of one product: its keys are not copied for each head.
    of_group = as_float32(query).reshape(groups, heads // groups * n, width)
    products = np.matmul(of_group, as_float32(key).swapaxes(1, 2)).reshape(heads, n, m)
    bias, seen = form.added(n, m), form.visible(n, m)
    bias = None if bias is None else bias.astype(np.float32)
    return np.asarray(logits_of(products, scale, softcap, bias, seen))


def logits_of(
    products: Any, scale: float, softcap: float | None, bias: Any, seen: Any, xp: Any = np,
    whole: int = 0,
) -> Any:  # fmt: skip
    """Return the logits of products q·k (H, N, M) and keys seen (H or 1, N, M).

    `xp` is the library of the arrays: NumPy, or one with functions of the same names (torch).
    The first `whole` keys are known to be seen by every row.
    """
    logits = products * scale
    if softcap is not None:
        logits /= softcap
        xp.tanh(logits, out=logits)
        logits *= softcap
    if bias is not None:
        logits += bias
    hidden = xp.where(seen[..., whole:], 0.0, -np.inf)
    logits[..., whole:] += xp.asarray(hidden, dtype=products.dtype)
    if whole:
        return logits
    nothing = ~seen.any(-1)[..., None]  # (H or 1, N, 1)
    return xp.where(nothing, 0.0, logits) if nothing.any() else logits


def normalised(logits: Any, sink: Any, xp: Any = np) -> Any:
    """Turn logits (H, N, M) into their softmax, in which a sink (H,) takes part; return them."""
    top = xp.amax(logits, axis=-1, keepdims=True)
    if sink is not None:
        top = xp.maximum(top, sink[:, None, None])
    grown = logits  # in place: a matrix less
    grown -= top
    xp.exp(grown, out=grown)
    total = grown.sum(-1)[..., None]
    if sink is not None:
        total = total + xp.exp(sink[:, None, None] - top)
    grown /= total
    return grown
