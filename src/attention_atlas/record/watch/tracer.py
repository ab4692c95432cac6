"""How do we see attention in a model that does not call transformers' attention function?

With eager attention such a model still multiplies queries by keys, adds mask and bias, takes a
softmax and multiplies by values, in torch. A TorchFunctionMode sees those operations and follows
the product until it is multiplied by the values. Nothing is patched, so the run is the plain run.
Mask and bias together are found by subtraction: logits − scale · q kᵀ. Hooks may replace what each
head moves: it is known as soon as it is multiplied, before the model goes on with it.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import FunctionType
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from transformers import PreTrainedModel

from attention_atlas.names.errors import ModelError
from attention_atlas.record.watch.call import Call
from attention_atlas.record.watch.door import Hook, Passing
from attention_atlas.record.watch.location import Location
from attention_atlas.record.watch.log_sum_exp import from_weights
from attention_atlas.record.watch.trail import (
    Trail,
    einsum_value,
    factor_of,
    product_of,
    reshaped,
    tie,
    trail_of,
)

_PRODUCTS = {"matmul", "bmm", "__matmul__", "__rmatmul__", "baddbmm", "einsum"}
_SHAPES = {
    "view", "reshape", "transpose", "permute", "unsqueeze", "squeeze", "flatten", "unflatten",
    "swapaxes", "swapdims", "__getitem__", "movedim",
}  # fmt: skip
# A mode sees torch's multi-head attention as one operation; of this copy it sees each step.
_MULTI_HEAD = FunctionType(
    F.multi_head_attention_forward.__code__,
    {**vars(F), "has_torch_function": lambda _tensors: False},
    argdefs=F.multi_head_attention_forward.__defaults__,
)


class Tracer(TorchFunctionMode):
    """A context that records the attention calls of a model; eager attention must be set.

    hooks   are called with each attention after it is recorded; they may replace its output
    record  whether calls are kept
    """

    def __init__(
        self,
        model: PreTrainedModel,
        *,
        batch: int,
        detail: bool = False,
        hooks: Sequence[Hook] = (),
        record: bool = True,
    ):
        super().__init__()
        self.model, self.batch, self.detail = model, batch, detail
        self.hooks, self.record = hooks, record
        self.calls: list[Call] = []
        self._location = Location(model)
        self._inside = False  # inside torch's own multi-head attention

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
        """Return the calls so far and forget them."""
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
            return self._fused(output, *args, **kwargs)
        if isinstance(output, Tensor) and output.is_floating_point():
            return self._follow(getattr(func, "__name__", ""), output, args, kwargs)
        return output

    # How each operation changes the trail ---------------------------------------------------

    def _follow(
        self, name: str, out: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Tensor:
        tensors = _tensors(args, kwargs)
        trail = next((t for tensor in tensors if (t := trail_of(tensor)) is not None), None)
        if name in _PRODUCTS and len(tensors) >= 2:
            if trail is not None and trail.logits is not None:
                return self._finish(name, out, trail, tensors, args)
            tie(out, product_of(name, tensors, args, kwargs))
        elif trail is None:
            return out
        elif name in ("softmax", "_softmax"):
            tie(out, replace(trail, logits=tensors[0]) if trail.logits is None else None)
        elif name in _SHAPES:
            tie(out, reshaped(trail, name, args, kwargs))
        elif out.numel() == max(x.numel() for x in tensors if trail_of(x) is not None):
            tie(out, replace(trail, scale=trail.scale * factor_of(name, args)))
        return out

    def _finish(
        self, name: str, out: Tensor, trail: Trail, tensors: list[Tensor], args: tuple[Any, ...]
    ) -> Tensor:
        """Record the attention call that ends with this product; return what the model gets."""
        weights = next(tensor for tensor in tensors if trail_of(tensor) is trail)
        value = next(tensor for tensor in tensors if tensor is not weights)
        first = weights is tensors[0]
        given = value

        def heads_of(moved: Tensor) -> Tensor | None:  # a view (B, N, H, E) where there is one
            if name == "einsum":
                moved = einsum_value(args[0], first, given, moved)[1]
            return _heads_last(four(moved))

        if name == "einsum":
            value, _ = einsum_value(args[0], first, given, out)
        logits = trail.logits
        assert logits is not None
        product = trail.query.float() @ trail.key.float().transpose(-1, -2) * trail.scale
        for shape in trail.shapes:
            product = shape(product)
        if product.shape != logits.shape or weights.numel() != logits.numel():
            return out
        module = self._location.innermost()
        four = _Four(self.batch, weights, getattr(module, "num_heads", None))
        query, key, values = four(trail.query), four(trail.key), four(value)
        if query is None or key is None or values is None:
            return out
        added = four(logits.float() - product)
        rounding = 1e-6 * max(1.0, float(product.abs().max()))
        own = _detached(four(weights))
        call = Call(
            query=query.detach(),
            key=key.detach(),
            value=values.detach(),
            scale=trail.scale,
            bias=None if added is None else added.detach(),
            weights=own if self.detail else None,
            output=_detached(heads_of(out)),
            rounding=rounding,
            **self._at(module),
        )
        if own is not None and not self.detail:
            call = replace(call, lse=from_weights(call, own))
        self._add(call)
        return self._changed(module, out, heads_of, (query, key, values))

    def _fused(
        self, out: Tensor, query: Tensor, key: Tensor, value: Tensor,
        attn_mask: Tensor | None = None, dropout_p: float = 0.0, is_causal: bool = False,
        scale: float | None = None, enable_gqa: bool = False,
    ) -> Tensor:  # fmt: skip
        """Record a direct call of torch's fused attention; return what the model gets."""
        if query.dim() != 4:
            return out
        mask = attn_mask
        if mask is not None:
            mask = mask.reshape((1,) * (4 - mask.dim()) + tuple(mask.shape)).detach()
        module = self._location.innermost()
        self._add(
            Call(
                query=query.detach(),
                key=key.detach(),
                value=value.detach(),
                scale=query.shape[-1] ** -0.5 if scale is None else scale,
                mask=mask,
                causal=is_causal,
                output=out.detach().transpose(1, 2),
                **self._at(module),
            )
        )
        return self._changed(module, out, lambda moved: moved.transpose(1, 2), (query, key, value))

    def _add(self, call: Call) -> None:
        if self.record:
            self.calls.append(call)

    def _changed(
        self,
        module: nn.Module,
        out: Tensor,
        heads_of: Callable[[Tensor], Tensor | None],
        vectors: tuple[Tensor, Tensor, Tensor],
    ) -> Tensor:
        """Let the hooks replace what the heads move; return it in the shape that the model has."""
        own = heads_of(out) if self.hooks else None
        if own is None:
            return out
        passing = Passing(*self._location.of(module), module, True, *vectors, None, {})
        passing.output = own
        for hook in self.hooks:
            hook.before(passing)
        for hook in self.hooks:
            hook.after(passing)
        if passing.output is own:
            return out
        changed = out.clone()
        view = heads_of(changed)
        if view is None or not _share(view, changed):
            raise ModelError(f"what the heads of {passing.site.module} move cannot be replaced")
        view.copy_(passing.output)
        return changed

    def _at(self, module: nn.Module) -> dict[str, Any]:
        """Return the fields of a Call that say where in the model it is."""
        site, surroundings = self._location.of(module)
        return vars(site) | vars(surroundings)


def _detached(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else tensor.detach()


def _tensors(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Tensor]:
    flat: list[Any] = []
    for argument in (*args, *kwargs.values()):
        flat.extend(argument if isinstance(argument, list | tuple) else [argument])
    return [item for item in flat if isinstance(item, Tensor)]


def _heads_last(output: Tensor | None) -> Tensor | None:
    return None if output is None else output.transpose(1, 2)


class _Four:
    """A function that reshapes the tensors of one attention call to (B, H, rows, columns)."""

    def __init__(self, batch: int, weights: Tensor, heads: Any):
        self.batch, self.dims, self.heads = batch, weights.dim(), heads
        self.axis = None
        if self.dims == 5 and isinstance(heads, int):
            axes = [axis for axis in (1, 2) if weights.shape[axis] == heads]
            self.axis = axes[0] if axes else None

    def __call__(self, tensor: Tensor) -> Tensor | None:
        if tensor.dim() == 4:
            return tensor
        if tensor.dim() == 3 and tensor.shape[0] % self.batch == 0:
            return tensor.reshape(self.batch, -1, *tensor.shape[1:])
        if tensor.dim() == 5 and self.axis is not None:
            return tensor.movedim(self.axis, 2).flatten(0, 1)
        return None


def _share(view: Tensor, whole: Tensor) -> bool:
    """Tell whether writing into a tensor writes into another."""
    return view.untyped_storage().data_ptr() == whole.untyped_storage().data_ptr()
