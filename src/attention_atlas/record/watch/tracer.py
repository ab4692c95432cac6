"""How do we see attention in a model that writes it out by hand?

Some models never call transformers' attention function. Under eager attention they still multiply
queries by keys, add things, take a softmax and multiply by values, in torch. A TorchFunctionMode
watches those operations go by and follows the product until it meets the values. Nothing is
patched, so the run is the plain run. Whatever was added to the logits is found by subtraction:
logits − scale · q kᵀ is mask and bias together.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from types import FunctionType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from transformers import PreTrainedModel

from attention_atlas.record.watch.call import Call
from attention_atlas.record.watch.location import Location

_PRODUCTS = {"matmul", "bmm", "__matmul__", "__rmatmul__", "baddbmm", "einsum"}
_TIMES = {"mul", "mul_", "__mul__", "__rmul__", "__imul__", "multiply"}
_OVER = {"div", "div_", "__truediv__", "__itruediv__", "true_divide", "divide"}
_SHAPES = {
    "view", "reshape", "transpose", "permute", "unsqueeze", "squeeze", "flatten", "unflatten",
    "swapaxes", "swapdims", "__getitem__", "movedim",
}  # fmt: skip
# Torch hands its multi-head attention to a mode whole; this copy of it is seen step by step.
_MULTI_HEAD = FunctionType(
    F.multi_head_attention_forward.__code__,
    {**vars(F), "has_torch_function": lambda _tensors: False},
    argdefs=F.multi_head_attention_forward.__defaults__,
)


@dataclass(frozen=True)
class Thread:
    """What we know of a tensor on its way from q kᵀ to the values."""

    query: Tensor  # (..., N, D)
    key: Tensor  # (..., M, D)
    scale: float = 1.0
    shapes: tuple[Callable[[Tensor], Tensor], ...] = ()  # how q kᵀ was reshaped since
    logits: Tensor | None = None  # what went into the softmax


class Tracer(TorchFunctionMode):
    """Records the attention calls of a model while open; eager attention must be set."""

    def __init__(self, model: PreTrainedModel, *, batch: int, detail: bool = False):
        super().__init__()
        self.model, self.batch, self.detail = model, batch, detail
        self.calls: list[Call] = []
        self._location = Location(model)
        self._inside = False  # below torch's own multi-head attention, whose body we enter

    def __enter__(self) -> "Tracer":
        if not self._inside:
            self._location.__enter__()
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *problem: Any) -> None:
        super().__exit__(*problem)  # type: ignore[no-untyped-call]
        if not self._inside:
            self._location.__exit__(*problem)

    def take(self) -> list[Call]:
        """Empty the tracer; gives the calls so far."""
        calls, self.calls = self.calls, []
        return calls

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if func is F.multi_head_attention_forward:
            self._inside = True
            try:
                with self:
                    return _MULTI_HEAD(*args, **kwargs)
            finally:
                self._inside = False
        output = func(*args, **kwargs)
        if func is F.scaled_dot_product_attention:
            self._fused(output, *args, **kwargs)
        elif isinstance(output, Tensor) and output.is_floating_point():
            self._follow(getattr(func, "__name__", ""), output, args, kwargs)
        return output

    # What each operation does to the thread --------------------------------------------------

    def _follow(
        self, name: str, out: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        tensors = _tensors(args, kwargs)
        thread = next((t for one in tensors if (t := _thread(one)) is not None), None)
        if name in _PRODUCTS and len(tensors) >= 2:
            if thread is not None and thread.logits is not None:
                self._finish(name, out, thread, tensors, args)
            else:
                _tie(out, _product(name, tensors, args, kwargs))
        elif thread is None:
            return
        elif name in ("softmax", "_softmax"):
            _tie(out, replace(thread, logits=tensors[0]) if thread.logits is None else None)
        elif name in _SHAPES:
            _tie(out, _reshaped(thread, name, args, kwargs))
        elif out.numel() == max(one.numel() for one in tensors if _thread(one) is not None):
            _tie(out, replace(thread, scale=thread.scale * _factor(name, args)))

    def _finish(
        self, name: str, out: Tensor, thread: Thread, tensors: list[Tensor], args: tuple[Any, ...]
    ) -> None:
        """softmax(…) has met the values: one attention call is complete."""
        weights = next(one for one in tensors if _thread(one) is thread)
        value = next(one for one in tensors if one is not weights)
        if name == "einsum":
            value, output = _einsum_value(args[0], weights is tensors[0], value, out)
        else:
            output = out
        logits = thread.logits
        assert logits is not None
        product = thread.query.float() @ thread.key.float().transpose(-1, -2) * thread.scale
        for shape in thread.shapes:
            product = shape(product)
        if product.shape != logits.shape or weights.numel() != logits.numel():
            return
        module = self._location.innermost()
        four = _Four(self.batch, weights, getattr(module, "num_heads", None))
        query, key, values = four(thread.query), four(thread.key), four(value)
        if query is None or key is None or values is None:
            return
        added = four(logits.float() - product)
        rounding = 1e-6 * max(1.0, float(product.abs().max()))
        self.calls.append(
            Call(
                query=query.detach(),
                key=key.detach(),
                value=values.detach(),
                scale=thread.scale,
                bias=None if added is None else added.detach(),
                weights=_detached(four(weights)) if self.detail else None,
                output=_detached(_heads_last(four(output))),
                rounding=rounding,
                **self._at(module),
            )
        )

    def _fused(
        self, out: Tensor, query: Tensor, key: Tensor, value: Tensor,
        attn_mask: Tensor | None = None, dropout_p: float = 0.0, is_causal: bool = False,
        scale: float | None = None, enable_gqa: bool = False,
    ) -> None:  # fmt: skip
        """A direct call of torch's fused attention says everything itself."""
        if query.dim() != 4:
            return
        mask = attn_mask
        if mask is not None:
            mask = mask.reshape((1,) * (4 - mask.dim()) + tuple(mask.shape)).detach()
        self.calls.append(
            Call(
                query=query.detach(),
                key=key.detach(),
                value=value.detach(),
                scale=query.shape[-1] ** -0.5 if scale is None else scale,
                mask=mask,
                causal=is_causal,
                output=out.detach().transpose(1, 2),
                **self._at(self._location.innermost()),
            )
        )

    def _at(self, module: nn.Module) -> dict[str, Any]:
        """The fields of a Call that say where it happened."""
        site, surroundings = self._location.of(module)
        return vars(site) | vars(surroundings)


def _thread(tensor: Tensor) -> Thread | None:
    return getattr(tensor, "_atlas_thread", None)


def _tie(tensor: Tensor, thread: Thread | None) -> None:
    if thread is not None:
        tensor._atlas_thread = thread  # type: ignore[attr-defined]


def _detached(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else tensor.detach()


def _tensors(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Tensor]:
    flat: list[Any] = []
    for one in (*args, *kwargs.values()):
        flat.extend(one if isinstance(one, list | tuple) else [one])
    return [one for one in flat if isinstance(one, Tensor)]


def _product(
    name: str, tensors: list[Tensor], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Thread | None:
    """The start of a thread, if this product could be queries by keys."""
    scale = 1.0
    if name == "einsum":
        return _einsum_product(args[0], tensors)
    left, right = tensors[-2:]
    if name == "baddbmm":
        scale = float(kwargs.get("alpha", 1.0))
        left, right = kwargs.get("batch1", left), kwargs.get("batch2", right)
    if left.dim() < 3 or right.dim() < 3:
        return None
    return Thread(left, right.transpose(-1, -2), scale)


def _einsum_product(equation: Any, tensors: list[Tensor]) -> Thread | None:
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
    return None if query is None or key is None else Thread(query, key)


def _einsum_value(
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


def _reshaped(
    thread: Thread, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Thread | None:
    if thread.logits is not None:  # weights on their way to the values: only the numbers matter
        return thread
    rest = args[1:]
    return replace(
        thread, shapes=(*thread.shapes, lambda x: getattr(torch.Tensor, name)(x, *rest, **kwargs))
    )


def _factor(name: str, args: tuple[Any, ...]) -> float:
    """By what a multiplication or division scales the logits; 1 for everything else."""
    if name not in _TIMES | _OVER or len(args) < 2:
        return 1.0
    number = next((one for one in (args[1], args[0]) if _is_number(one)), None)
    if number is None:
        return 1.0
    return float(number) if name in _TIMES else 1.0 / float(number)


def _is_number(one: Any) -> bool:
    return isinstance(one, int | float) or (isinstance(one, Tensor) and one.numel() == 1)


def _heads_last(output: Tensor | None) -> Tensor | None:
    return None if output is None else output.transpose(1, 2)


class _Four:
    """Brings tensors of one attention call into (B, H, rows, columns)."""

    def __init__(self, batch: int, weights: Tensor, heads: Any):
        self.batch, self.dims, self.heads = batch, weights.dim(), heads
        self.axis = None
        if self.dims == 5 and isinstance(heads, int):
            found = [axis for axis in (1, 2) if weights.shape[axis] == heads]
            self.axis = found[0] if found else None

    def __call__(self, tensor: Tensor) -> Tensor | None:
        if tensor.dim() == 4:
            return tensor
        if tensor.dim() == 3 and tensor.shape[0] % self.batch == 0:
            return tensor.reshape(self.batch, -1, *tensor.shape[1:])
        if tensor.dim() == 5 and self.axis is not None:
            return tensor.movedim(self.axis, 2).flatten(0, 1)
        return None
