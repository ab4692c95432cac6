"""What does the tracer know about a tensor between the queries and keys and the values?

The tracer attaches a trail to the product of queries and keys, and to each tensor made from it.
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
    """The origin of a tensor between q kᵀ and the values."""

    query: Tensor  # (..., N, D)
    key: Tensor  # (..., M, D)
    scale: float = 1.0
    shapes: tuple[Callable[[Tensor], Tensor], ...] = ()  # how q kᵀ was reshaped since
    logits: Tensor | None = None  # what went into the softmax


def trail_of(tensor: Tensor) -> Trail | None:
    """Return the trail of a tensor, or None."""
    return getattr(tensor, "_atlas_trail", None)


def tie(tensor: Tensor, trail: Trail | None) -> None:
    """Attach a trail to a tensor."""
    if trail is not None:
        tensor._atlas_trail = trail  # type: ignore[attr-defined]


def product_of(
    name: str, tensors: list[Tensor], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Trail | None:
    """Return the start of a trail if this product could be queries by keys, else None."""
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
    """Return value (..., M, E) and output (..., N, E), in the order of the weights' axes."""
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
    """Return the trail of a tensor after it was reshaped."""
    if trail.logits is not None:  # after the softmax the shape does not matter
        return trail
    rest = args[1:]
    return replace(
        trail, shapes=(*trail.shapes, lambda x: getattr(torch.Tensor, name)(x, *rest, **kwargs))
    )


def factor_of(name: str, args: tuple[Any, ...]) -> float:
    """Return the factor by which an operation scales the logits; 1 if it is no scaling."""
    if name not in _TIMES | _OVER or len(args) < 2:
        return 1.0
    number = next((argument for argument in (args[1], args[0]) if _is_number(argument)), None)
    if number is None:
        return 1.0
    return float(number) if name in _TIMES else 1.0 / float(number)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) or (isinstance(value, Tensor) and value.numel() == 1)
