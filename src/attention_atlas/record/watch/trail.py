"""What do we know of a tensor on its way from queries and keys to the values?

The tracer ties a trail to the product of queries and keys, and to each tensor made of it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

_TIMES = {"mul", "mul_", "__mul__", "__rmul__", "__imul__", "multiply"}
_OVER = {"div", "div_", "__truediv__", "__itruediv__", "true_divide", "divide"}


@dataclass(frozen=True)
class Trail:
    """What we know of a tensor on its way from q kᵀ to the values."""

    query: Tensor  # (..., N, D)
    key: Tensor  # (..., M, D)
    scale: float = 1.0
    shapes: tuple[Callable[[Tensor], Tensor], ...] = ()  # how q kᵀ was reshaped since
    logits: Tensor | None = None  # what went into the softmax


def trail_of(tensor: Tensor) -> Trail | None:
    """The trail that a tensor carries."""
    return getattr(tensor, "_atlas_trail", None)


def tie(tensor: Tensor, trail: Trail | None) -> None:
    """Let a tensor carry a trail."""
    if trail is not None:
        tensor._atlas_trail = trail  # type: ignore[attr-defined]


def product_of(
    name: str, tensors: list[Tensor], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Trail | None:
    """The start of a trail, if this product could be queries by keys."""
    scale = 1.0
    if name == "einsum":
        return _einsum_product(args[0], tensors)
    left, right = tensors[-2:]
    if name == "baddbmm":
        scale = float(kwargs.get("alpha", 1.0))
        left, right = kwargs.get("batch1", left), kwargs.get("batch2", right)
    if left.dim() < 3 or right.dim() < 3:
        return None
    return Trail(left, right.transpose(-1, -2), scale)


def _einsum_product(equation: Any, tensors: list[Tensor]) -> Trail | None:
    labels = _labels(equation)
    if labels is None:
        return None
    left, right, out = labels
    inner = set(left) & set(right) - set(out)
    if len(inner) != 1 or len(out) < 3:
        return None
    *batch, row, column = list(out)
    if not (row in left and column in right and row not in right and column not in left):
        return None
    query = _permuted(tensors[0], left, [*batch, row, *inner])
    key = _permuted(tensors[1], right, [*batch, column, *inner])
    return None if query is None or key is None else Trail(query, key)


def einsum_value(
    equation: Any, weights_first: bool, value: Tensor, out: Tensor
) -> tuple[Tensor, Tensor]:
    """Value as (..., M, E) and output as (..., N, E), in the order of the weights' axes."""
    labels = _labels(equation)
    assert labels is not None
    left, right, result = labels
    weights, other = (left, right) if weights_first else (right, left)
    *batch, row, column = list(weights)
    width = next(label for label in other if label not in weights)
    moved = _permuted(value, other, [*batch, column, width])
    placed = _permuted(out, result, [*batch, row, width])
    return (value if moved is None else moved), (out if placed is None else placed)


def _labels(equation: Any) -> tuple[str, str, str] | None:
    if not isinstance(equation, str) or "." in equation or equation.count(",") != 1:
        return None
    inputs, arrow, out = equation.replace(" ", "").partition("->")
    left, right = inputs.split(",")
    return (left, right, out) if arrow else None


def _permuted(tensor: Tensor, have: str, want: list[str]) -> Tensor | None:
    if sorted(have) != sorted(want):
        return None
    return tensor.permute([have.index(label) for label in want])


def reshaped(
    trail: Trail, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Trail | None:
    """The trail of a tensor after it was reshaped."""
    if trail.logits is not None:  # weights on their way to the values: only the numbers matter
        return trail
    rest = args[1:]
    return replace(
        trail, shapes=(*trail.shapes, lambda x: getattr(torch.Tensor, name)(x, *rest, **kwargs))
    )


def factor_of(name: str, args: tuple[Any, ...]) -> float:
    """By what a multiplication or division scales the logits; 1 for everything else."""
    if name not in _TIMES | _OVER or len(args) < 2:
        return 1.0
    number = next((one for one in (args[1], args[0]) if _is_number(one)), None)
    if number is None:
        return 1.0
    return float(number) if name in _TIMES else 1.0 / float(number)


def _is_number(one: Any) -> bool:
    return isinstance(one, int | float) or (isinstance(one, Tensor) and one.numel() == 1)
