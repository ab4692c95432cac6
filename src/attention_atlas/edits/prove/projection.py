"""What does a layer's attention give to the model? Asked of the model, not of its module names.

What the heads move goes through one linear module, the output projection. It is the first module
with a matrix of weights that runs after the attention call, whose output depends on what the heads
move, and does so linearly: half of it gives the middle between all of it and nothing.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from attention_atlas.edits.anatomy import ModelLayer
from attention_atlas.edits.hooks import Stack
from attention_atlas.record.watch.door import Passing

LOOKED_AT = 6  # modules after an attention call, among which its projection must be


@dataclass(frozen=True)
class Ran:
    """One module that ran after an attention call, with what it was given and gave."""

    module: nn.Module
    given: Tensor
    gave: Tensor


class Stop(Exception):  # noqa: N818 (a signal that all is seen, not an error)
    """The signal that a pass has run far enough."""


@contextmanager
def after_attention(model: nn.Module, layer: ModelLayer, stack: Stack) -> Iterator[list[Ran]]:
    """Record the modules with weights that run after a layer's attention; yield them in order."""
    found: list[Ran] = []
    passed = False

    def passing_by(passing: Passing) -> None:
        nonlocal passed
        if (passing.site.module, passing.site.visit) == (layer.module, layer.visit):
            passed = True
            found.clear()  # a layer may take its input in parts: after the last of them

    def keep(module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        if not passed or not all(isinstance(x, Tensor) for x in (output, *args[:1])) or not args:
            return
        found.append(Ran(module, args[0].detach().clone(), output.detach().clone()))
        if len(found) == LOOKED_AT:
            raise Stop

    stack.on_call = passing_by
    hooks = [
        module.register_forward_hook(keep)
        for module in model.modules()
        if not any(module.children()) and _has_matrix(module)
    ]
    try:
        yield found
    finally:
        for hook in hooks:
            hook.remove()


def _has_matrix(module: nn.Module) -> bool:
    weight = getattr(module, "weight", None)
    return isinstance(weight, Tensor) and weight.dim() >= 2


def run_to_projection(
    model: nn.Module, tensors: dict[str, Tensor], layer: ModelLayer, stack: Stack
) -> list[Ran]:
    """Run an edited model up to a layer's projection; return what ran after its attention."""
    with torch.no_grad(), after_attention(model, layer, stack) as found, suppress(Stop):
        model(**tensors)
    return found


@dataclass(frozen=True)
class Projection:
    """The output projection of a layer, and which of the numbers it is given the heads moved."""

    module: nn.Module
    moved: Tensor  # bool, in the shape of what the module is given


def find_projection(
    whole: list[Ran], half: list[Ran], nothing: list[Ran], bound: float
) -> Projection | None:
    """Return a layer's projection, from runs with all, half and none of what its heads move."""
    for all_of, half_of, none_of in zip(whole, half, nothing, strict=False):
        if not all_of.gave.shape == half_of.gave.shape == none_of.gave.shape:
            return None
        if torch.equal(all_of.gave, none_of.gave):
            continue
        middle = (all_of.gave.double() + none_of.gave.double()) / 2
        size = max(float(all_of.gave.abs().max()), float(none_of.gave.abs().max()))
        if float((half_of.gave.double() - middle).abs().max()) <= bound * size:
            return Projection(all_of.module, all_of.given != none_of.given)
        return None
    return None
