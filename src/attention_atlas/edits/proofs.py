"""Which checks make an edit receipt, and what does each compare? `receipt` says why."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from attention_atlas.edits.ablate import ablate
from attention_atlas.edits.anatomy import DOORS, Layer
from attention_atlas.edits.apply import editing
from attention_atlas.edits.bind import bind
from attention_atlas.edits.case import Case
from attention_atlas.edits.edit import ALL, Edit
from attention_atlas.edits.hooks import Stack
from attention_atlas.edits.mask import mask
from attention_atlas.edits.neuron import neuron
from attention_atlas.edits.patch import STAGES, patch
from attention_atlas.edits.pattern import pattern
from attention_atlas.edits.projection import Projection, Ran, find_projection
from attention_atlas.edits.scale import scale
from attention_atlas.edits.watch import watching_edited
from attention_atlas.names.errors import AtlasError, ModelError
from attention_atlas.record.prove.layer_errors import bound_of, relative_error, worst
from attention_atlas.record.watch.call import Call
from attention_atlas.record.watch.layers import layers_of
from attention_atlas.record.watch.pieces import Forms, Piece, pieces
from attention_atlas.record.watch.ways import observe

SIDES = ("query", "key", "value")


@dataclass(frozen=True)
class Found:
    """What a check found: the largest error, the bound on it, and what it could not look at."""

    error: float
    bound: float
    note: str = ""


def no_ops(case: Case) -> dict[str, list[Edit]]:
    """Return edits of each kind that change nothing."""
    itself = case.given
    nothing: dict[str, list[Edit]] = {
        "ablate": [ablate(ALL, by="resample", from_=[itself])],
        "scale": [scale(ALL, 1.0)],
        "mask": [mask(ALL, tokens=())],
        "pattern": [pattern(ALL, "even", positions=())],
    }
    for side in SIDES:
        nothing[f"neuron ({side})"] = [neuron(ALL, side, 0, scale=1.0, shared=True)]
    for what in STAGES:
        nothing[f"patch ({what})"] = [patch(ALL, what, from_=itself, shared=True)]
    return nothing


def no_op(case: Case, edits: list[Edit]) -> Found:
    """Compare a run with edits that change nothing with a plain run; the bound is zero."""
    plain = case.plain(any(edit.stage.name == "weights" for edit in edits))
    changed = case.edited(edits)
    if [tensor.shape for tensor in plain] != [tensor.shape for tensor in changed]:
        return Found(math.inf, 0.0)
    off = [
        float((a.nan_to_num() - b.nan_to_num()).abs().max())
        for a, b in zip(plain, changed, strict=True)
        if a.numel()
    ]
    return Found(max(off, default=0.0), 0.0)


def contributions(case: Case) -> Found:
    """Compare what each layer gives with the sum of what its heads give, one by one."""
    return _over_layers(case, _contributions, _bound(case))


def _contributions(case: Case, layer: Layer) -> float:
    every = range(layer.heads)
    silent = [[], every, *([head for head in every if head != alone] for alone in every)]
    module = _projection(case, layer).module
    whole, nothing, *alone = _without(case, layer, module, silent)
    parts = torch.stack(alone).double() - nothing.double()  # (H, …)
    total = nothing.double() + parts.sum(0)
    size = max(float(whole.abs().max()), float(parts.abs().sum(0).max()))
    return float((total - whole.double()).abs().max()) / size


def all_ablated(case: Case) -> Found:
    """Compare what each layer gives without its heads with its projection of zeros."""
    return _over_layers(case, _all_ablated, _bound(case))


def _all_ablated(case: Case, layer: Layer) -> float:
    projection = _projection(case, layer)
    whole, nothing = _without(case, layer, projection.module, [[], range(layer.heads)])

    def zeros(_module: nn.Module, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return args[0].masked_fill(projection.moved, 0), *args[1:]

    hook = projection.module.register_forward_pre_hook(zeros)
    try:
        zeroed = _gave(case.at(layer, []), projection.module).flatten()
    finally:
        hook.remove()
    return float((nothing - zeroed).abs().max()) / float(whole.abs().max())


def no_say(case: Case) -> Found:
    """Compare what is left without a head, before and after its values are doubled."""
    return _over_layers(case, _no_say, 0.0)


def _no_say(case: Case, layer: Layer) -> float:
    heads = layer.sharing(layer.number % layer.heads)
    named = [layer.name(head) for head in heads]
    double = neuron(named, "value", range(layer.value_width), scale=2.0)
    runs: list[list[Edit]] = [[ablate(named)], [double, ablate(named)], [double], []]
    without, still, doubled, plain = ([ran.gave for ran in case.at(layer, run)] for run in runs)
    if _apart(doubled, plain) == 0.0:
        raise ModelError(f"the values of {named[0]} make no difference, so nothing can be shown")
    return _apart(without, still)


def _apart(first: list[Tensor], second: list[Tensor]) -> float:
    both = zip(first, second, strict=True)
    return max((float((a - b).abs().max()) for a, b in both), default=0.0)


def read_back(case: Case) -> Found:
    """Compare the weights that a run has, and what they move, with the pattern that was set."""
    plain = _whole(observe(case.loaded.model, case.tensors, case.known.way, detail=True))

    def of_layer(case: Case, layer: Layer) -> float:
        stack = Stack(bind(case.loaded, [pattern(layer.name(0), "even")], case.known))
        watch = watching_edited(case.loaded.model, stack, case.known.way, detail=True)
        site = layer.module, layer.visit
        return _off(_whole(watch(case.tensors))[site], plain[site])

    return _over_layers(case, of_layer, _bound(case))


def _whole(calls: list[Call]) -> dict[tuple[str, int], Piece]:
    """Return what each layer did with the one input, by module and visit."""
    every = slice(None)
    return {
        (layer.first.module, layer.first.visit): pieces(layer, 0, 1, every, every, Forms())[0]
        for layer in layers_of(calls)
    }


def _off(edited: Piece, plain: Piece) -> float:
    """Return how far the first head is from looking evenly at the keys that it saw plainly."""
    assert edited.weights is not None and edited.output is not None
    n, m = edited.weights.shape[1:]
    seen = torch.from_numpy(plain.form.visible(n, m)[0]).double()
    rows = seen.any(-1)
    even = (seen / seen.sum(-1, keepdim=True))[rows]
    moved = even @ edited.value[0].double().cpu()
    weights_error = float((edited.weights[0].double().cpu()[rows] - even).abs().max())
    return worst(weights_error, relative_error(edited.output[0].cpu()[rows], moved))


def _projection(case: Case, layer: Layer) -> Projection:
    """Return a layer's projection, found with our own edits whatever the case edits with."""
    trusted, name = replace(case, editing=editing), f"{layer.tower}.L{layer.number}"

    def times(factor: float) -> list[Edit]:
        if case.known.way not in DOORS:
            return [scale(name, factor)]
        every = range(layer.value_width)
        return [neuron(name, "value", every, scale=factor, shared=True)]

    whole, half, nothing = (trusted.at(layer, times(factor)) for factor in (1.0, 0.5, 0.0))
    projection = find_projection(whole, half, nothing, _bound(case))
    if projection is None:
        raise ModelError(
            f"what the heads of {name} move goes through no linear module that we can see, so "
            "their contributions cannot be told apart"
        )
    return projection


def _without(case: Case, layer: Layer, module: nn.Module, silent: list[Any]) -> list[Tensor]:
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


def _over_layers(case: Case, check: Callable[[Case, Layer], float], bound: float) -> Found:
    """Return the worst error over the layers; refuse if it can be found in none of them."""
    error, against, made = 0.0, "", 0
    for layer in case.known.layers:
        try:
            error = worst(error, check(case, layer))
            made += 1
        except AtlasError as problem:
            against = against or str(problem)
    if not made:
        raise ModelError(against)
    note = f"in {made} of {len(case.known.layers)} layers: {against}" if against else ""
    return Found(error, bound, note)


def _bound(case: Case) -> float:
    return bound_of(case.loaded.model.dtype)


CHECKS: dict[str, Callable[[Case], Found]] = {
    "contributions add up to the layer": contributions,
    "all heads ablated: as attention zeroed": all_ablated,
    "an ablated head has no say": no_say,
    "a pattern that was set is read back": read_back,
}
