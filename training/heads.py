"""What do the heads of a trained model do? Means over many rows of eager attention weights.

Weights are (rows, H, N, N): a row looks, a column is looked at.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

Attentions = Sequence[Tensor]


def previous_token(weights: Tensor) -> Tensor:
    return weights.diagonal(offset=-1, dim1=2, dim2=3).mean((0, 2))  # (H,)


def next_token(weights: Tensor) -> Tensor:
    return weights.diagonal(offset=1, dim1=2, dim2=3).mean((0, 2))  # (H,)


def first_token(weights: Tensor) -> Tensor:
    return weights[:, :, 1:, 0].mean((0, 2))  # (H,)


def induction(weights: Tensor, period: int) -> Tensor:
    """Weight on the token after the earlier copy, in a row that ends with its last `period` twice.

    The second copy's query i looks at i - period + 1; its first token is left out, since nothing
    of the pattern has been seen again before it.
    """
    one_after_the_copy = weights.diagonal(offset=1 - period, dim1=2, dim2=3)
    return one_after_the_copy[..., -(period - 1) :].mean((0, 2))  # (H,)


def onto(weights: Tensor, marked: Tensor) -> Tensor:
    """Weight on marked tokens together; `marked` is (rows, N)."""
    return (weights * marked[:, None, None, :]).sum(3).mean((0, 2))  # (H,)


def table(per_layer: Iterable[Tensor]) -> list[list[float]]:
    """(L, H) as rounded numbers."""
    return [[round(value, 4) for value in layer.tolist()] for layer in per_layer]


def best(scores: list[list[float]]) -> tuple[str, float]:
    """Name and score of the strongest head."""
    value, layer, head = max((v, i, j) for i, row in enumerate(scores) for j, v in enumerate(row))
    return f"L{layer}H{head}", value


def attentions(model: Any, **inputs: Tensor) -> Attentions:
    """Weights of every layer, from plain eager attention."""
    usual = model.config._attn_implementation
    model.set_attn_implementation("eager")
    with torch.no_grad():
        weights: Attentions = model(**inputs, output_attentions=True).attentions
    model.set_attn_implementation(usual)
    return weights
