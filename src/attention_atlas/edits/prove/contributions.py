"""Do the heads of a layer add up to it, and has a head that was ablated no say any more?"""

import math
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from attention_atlas.edits.ablate import ablate
from attention_atlas.edits.anatomy import DOORS, ModelLayer
from attention_atlas.edits.apply import editing
from attention_atlas.edits.edit import Edit
from attention_atlas.edits.neuron import neuron
from attention_atlas.edits.prove.case import Case
from attention_atlas.edits.prove.found import Found, bound, over_layers
from attention_atlas.edits.prove.projection import Projection, Ran, find_projection
from attention_atlas.edits.scale import scale
from attention_atlas.models.exclusive import EXCLUSIVE
from attention_atlas.names.errors import ModelError


def contributions(case: Case) -> Found:
    """Compare what each layer gives with the sum of what its heads give, one by one."""
    return over_layers(case, _contributions, bound(case))


def _contributions(case: Case, layer: ModelLayer) -> float:
    every = range(layer.heads)
    silent = [[], every, *([head for head in every if head != alone] for alone in every)]
    module = projection_of(case, layer).module
    whole, nothing, *alone = _without(case, layer, module, silent)
    parts = torch.stack(alone).double() - nothing.double()  # (H, …)
    total = nothing.double() + parts.sum(0)
    size = max(float(whole.abs().max()), float(parts.abs().sum(0).max()))
    return float((total - whole.double()).abs().max()) / size


def all_ablated(case: Case) -> Found:
    """Compare what each layer gives without its heads with its projection of zeros."""
    return over_layers(case, _all_ablated, bound(case))


def _all_ablated(case: Case, layer: ModelLayer) -> float:
    projection = projection_of(case, layer)
    whole, nothing = _without(case, layer, projection.module, [[], range(layer.heads)])

    def zeros(_module: nn.Module, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return args[0].masked_fill(projection.moved, 0), *args[1:]

    with EXCLUSIVE:  # another thread's pass must not meet this hook
        hook = projection.module.register_forward_pre_hook(zeros)
        try:
            zeroed = _gave(case.at(layer, []), projection.module).flatten()
        finally:
            hook.remove()
    return float((nothing - zeroed).abs().max()) / float(whole.abs().max())


def no_say(case: Case) -> Found:
    """Compare what is left without a head, before and after its values are doubled."""
    return over_layers(case, _no_say, 0.0)


def _no_say(case: Case, layer: ModelLayer) -> float:
    heads = layer.sharing(layer.number % layer.heads)
    named = [layer.name(head) for head in heads]
    double = neuron(named, "value", range(layer.value_width), scale=2.0)
    runs: list[list[Edit]] = [[ablate(named)], [double, ablate(named)], [double], []]
    without, still, doubled, plain = ([ran.gave for ran in case.at(layer, run)] for run in runs)
    if _apart(doubled, plain) == 0.0:
        raise ModelError(f"the values of {named[0]} make no difference, so nothing can be shown")
    return _apart(without, still)


def _apart(first: list[Tensor], second: list[Tensor]) -> float:
    if [tensor.shape for tensor in first] != [tensor.shape for tensor in second]:
        return math.inf  # tokens went to other experts
    both = zip(first, second, strict=True)
    return max((float((a - b).abs().max()) for a, b in both), default=0.0)


def projection_of(case: Case, layer: ModelLayer) -> Projection:
    """Return a layer's projection, found with our own edits whatever the case edits with."""
    if layer in case.projections:
        return case.projections[layer]
    trusted, name = replace(case, editing=editing), f"{layer.tower}.L{layer.number}"

    def times(factor: float) -> list[Edit]:
        if case.known.way not in DOORS:
            return [scale(name, factor)]
        every = range(layer.value_width)
        return [neuron(name, "value", every, scale=factor, shared=True)]

    whole, half, nothing = (trusted.at(layer, times(factor)) for factor in (1.0, 0.5, 0.0))
    projection = find_projection(whole, half, nothing, bound(case))
    if projection is None:
        raise ModelError(
            f"what the heads of {name} move goes through no linear module that we can see, so "
            "their contributions cannot be told apart"
        )
    case.projections[layer] = projection
    return projection


def _without(case: Case, layer: ModelLayer, module: nn.Module, silent: list[Any]) -> list[Tensor]:
    """Return what a layer's projection gives without some heads, for each list of heads."""
    names = [[layer.name(head) for head in heads] for heads in silent]
    if case.can_repeat(layer):
        edits = [ablate(named, inputs=world) for world, named in enumerate(names) if named]
        return list(_gave(case.at(layer, edits, len(names)), module).view(len(names), -1))
    return [
        _gave(case.at(layer, [ablate(named)] if named else []), module).flatten() for named in names
    ]


def _gave(found: list[Ran], module: nn.Module) -> Tensor:
    return next(ran.gave for ran in found if ran.module is module)
