"""Which numbers among a model's weights belong to some heads? Asked of the model, by running it.

Query, key and value: the attention module runs on random numbers, and the gradient of one token's
query (or key, value) of a head is not zero at the weights that make it. Weights that other heads
read as well, such as a norm over all queries, belong to no head.

Output: the projection is found as for the edit receipt. What it is given changes in the heads'
places when they are ablated, and the gradient with only these places filled shows their weights.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from attention_atlas.edits.ablate import ablate
from attention_atlas.edits.anatomy import DOORS, ModelLayer
from attention_atlas.edits.prove.case import Case
from attention_atlas.edits.prove.contributions import projection_of
from attention_atlas.edits.prove.projection import Ran
from attention_atlas.names.errors import ModelError
from attention_atlas.record.watch.door import Door, Passing
from attention_atlas.record.watch.setting import Setting
from attention_atlas.record.watch.tracer import Tracer

Slices = dict[nn.Parameter, Tensor]  # bool, in the shape of the weights
SIDES = ("query", "key", "value")


def input_slices(case: Case, layer: ModelLayer, heads: tuple[int, ...]) -> Slices:
    """Return the weights that make the query, key and value of some heads of a layer."""
    model = case.loaded.model
    path = layer.module
    while True:
        owner = model.get_submodule(path)
        slices, missing = _owned(case, layer, heads, owner)
        if not missing:
            return slices
        if not path:
            raise ModelError(
                f"no weights were found that make the {missing} of {layer.name(heads[0])}, so it "
                "cannot be trained alone"
            )
        path = path.rpartition(".")[0]  # the projections may stand outside of the module


def _owned(
    case: Case, layer: ModelLayer, heads: tuple[int, ...], owner: nn.Module
) -> tuple[Slices, str]:
    """Return the weights inside a module that only these heads read, and a side without any."""
    weights = [weight for weight in owner.parameters() if weight.is_floating_point()]
    own = {weight: torch.zeros_like(weight, dtype=torch.bool) for weight in weights}
    foreign = {weight: torch.zeros_like(weight, dtype=torch.bool) for weight in weights}
    chosen = {"query": heads, "key": layer.groups_of(heads), "value": layer.groups_of(heads)}
    with _differentiable(weights):
        for side, vectors in zip(SIDES, _vectors(case, layer, owner), strict=True):
            found = False
            for unit in range(vectors.shape[1]):
                masks = own if unit in chosen[side] else foreign
                found |= _add_gradient(vectors[0, unit, 0], weights, masks)
            if not found:
                return {}, side
    return {w: own[w] & ~foreign[w] for w in weights if bool((own[w] & ~foreign[w]).any())}, ""


def _add_gradient(vector: Tensor, weights: Sequence[nn.Parameter], masks: Slices) -> bool:
    """Mark the weights that one token's vector (D,) depends on; return whether there are any.

    The first token: a rotary position of zero leaves its vector as the projection gave it.
    """
    if not vector.requires_grad:
        return False
    factors = torch.rand_like(vector) + 0.5
    slopes = torch.autograd.grad(
        (vector * factors).sum(), weights, retain_graph=True, allow_unused=True
    )
    any_found = False
    for weight, slope in zip(weights, slopes, strict=True):
        if slope is not None:
            masks[weight] |= slope != 0
            any_found |= bool((slope != 0).any())
    return any_found


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


def _vectors(case: Case, layer: ModelLayer, owner: nn.Module) -> tuple[Tensor, Tensor, Tensor]:
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
def _differentiable(weights: Sequence[nn.Parameter]) -> Iterator[None]:
    before = [weight.requires_grad for weight in weights]
    for weight in weights:
        weight.requires_grad_(True)
    try:
        yield
    finally:
        for weight, old in zip(weights, before, strict=True):
            weight.requires_grad_(old)


def output_slices(case: Case, layer: ModelLayer, heads: tuple[int, ...]) -> Slices:
    """Return the weights of a layer's projection that read what some heads move."""
    module = projection_of(case, layer).module
    others = [head for head in range(layer.heads) if head not in heads]
    plain = _given(case.at(layer, []), module)
    places = _given(case.at(layer, [_without(layer, heads)]), module) != plain
    if others:
        places &= _given(case.at(layer, [_without(layer, others)]), module) == plain
    weights = [weight for weight in module.parameters() if weight.is_floating_point()]
    filled = torch.where(places, torch.rand_like(plain) + 0.5, 0.0).to(plain.dtype)
    with _differentiable(weights), torch.enable_grad():
        slopes = [
            torch.autograd.grad(module(given).sum(), weights, allow_unused=True)
            for given in (filled, torch.zeros_like(plain))
        ]
    slices: Slices = {}
    for weight, slope, always in zip(weights, *slopes, strict=True):
        if slope is not None:
            own = (slope != 0) & (torch.zeros_like(slope) if always is None else always).eq(0)
            slices |= {weight: own} if bool(own.any()) else {}
    return slices


def _without(layer: ModelLayer, heads: Sequence[int]) -> Any:
    return ablate([layer.name(head) for head in heads])


def _given(ran: list[Ran], module: nn.Module) -> Tensor:
    return next(each.given for each in ran if each.module is module)
