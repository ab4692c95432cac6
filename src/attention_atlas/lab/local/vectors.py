"""What query, key and value does an attention layer make of random numbers, with gradients?

The module is cut off from what comes before it: so all that its vectors depend on is its own, also
where the same module ran for earlier layers.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from attention_atlas.edits.anatomy import DOORS, ModelLayer
from attention_atlas.edits.prove.case import Case
from attention_atlas.names.errors import ModelError
from attention_atlas.record.watch.door import Door, Passing
from attention_atlas.record.watch.setting import Setting
from attention_atlas.record.watch.tracer import Tracer


class _Seen(Exception):  # noqa: N818 (a signal, not an error)
    """The signal that the layer's vectors were seen."""


class _Vectors:
    """A hook that keeps query, key and value of one layer with their gradients."""

    needs_weights = False

    def __init__(self, layer: ModelLayer):
        self.site = layer.module, layer.visit
        self.seen: tuple[Tensor, Tensor, Tensor] | None = None

    def before(self, passing: Passing) -> None:
        """Keep the vectors of the layer, and end the pass."""
        if (passing.site.module, passing.site.visit) == self.site:
            self.seen = passing.query, passing.key, passing.value
            raise _Seen

    def after(self, passing: Passing) -> None:
        """Do nothing: all is read before attention."""


def layer_vectors(case: Case, layer: ModelLayer, owner: nn.Module) -> tuple[Tensor, Tensor, Tensor]:
    """Return query, key and value of a layer, as its module makes them of random numbers."""
    model, hook = case.loaded.model, _Vectors(layer)
    handle = owner.register_forward_pre_hook(_with_random_numbers, with_kwargs=True)
    try:
        if case.known.way in DOORS:
            with Door(model, [hook], way=case.known.way, gradients=True).open():
                model(**case.tensors)
        else:
            tracer = Tracer(model, batch=1, hooks=[hook], record=False)
            with Setting(model, "eager", gradients=True).held(), tracer:
                model(**case.tensors)
    except _Seen:
        pass
    finally:
        handle.remove()
    if hook.seen is None:
        raise ModelError(f"{layer.name(0)} did not run on this input")
    return hook.seen


def _with_random_numbers(_module: nn.Module, args: Any, given: dict[str, Any]) -> Any:
    """Replace the sequences of vectors (B, N, width) that a module is given; they have no past."""

    def replaced(value: Any) -> Any:
        if isinstance(value, Tensor) and value.is_floating_point() and value.dim() == 3:
            return torch.randn_like(value)
        return value

    return tuple(map(replaced, args)), {name: replaced(value) for name, value in given.items()}


@contextmanager
def differentiable(weights: Sequence[nn.Parameter]) -> Iterator[None]:
    """Let weights have gradients inside the block."""
    before = [weight.requires_grad for weight in weights]
    for weight in weights:
        weight.requires_grad_(True)
    try:
        yield
    finally:
        for weight, old in zip(weights, before, strict=True):
            weight.requires_grad_(old)
