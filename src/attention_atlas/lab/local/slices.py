"""Which numbers among a model's weights belong to some heads? Asked of the model, by running it.

Query, key and value: the attention module runs on random numbers, and the gradient of one token's
query (or key, value) of a head is not zero at the weights that make it. Weights that other heads
read as well, such as a norm over all queries, belong to no head. Where all that makes a head's key
is read by others too (a model that spreads one key over a group), the weights with the fewest
readers are the key's, and the readers are told.

Output: the projection is found as for the edit receipt. What it is given changes in the heads'
places when they are ablated, and the gradient with only these places filled shows their weights.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from attention_atlas.edits.ablate import ablate
from attention_atlas.edits.anatomy import ModelLayer
from attention_atlas.edits.prove.case import Case
from attention_atlas.edits.prove.contributions import projection_of
from attention_atlas.edits.prove.projection import Ran
from attention_atlas.lab.local.vectors import differentiable, layer_vectors
from attention_atlas.names.errors import ModelError

Slices = dict[nn.Parameter, Tensor]  # bool, in the shape of the weights
SIDES = ("query", "key", "value")


@dataclass(frozen=True)
class Made:
    """The weights that make the vectors of some heads, and the other heads that read them."""

    slices: Slices
    readers: frozenset[int] = frozenset()


def input_slices(case: Case, layer: ModelLayer, heads: tuple[int, ...]) -> Made:
    """Return the weights that make the query, key and value of some heads of a layer."""
    model = case.loaded.model
    path = layer.module
    while True:
        search = _Search(case, layer, heads, model.get_submodule(path))
        made, missing = search.made()
        if not missing:
            return made
        if not path:
            raise ModelError(
                f"no weights were found that make the {missing} of {layer.name(heads[0])}, so it "
                "cannot be trained alone"
            )
        path = path.rpartition(".")[0]  # the projections may stand outside of the module


class _Search:
    """A search for the weights of some heads inside a module."""

    def __init__(self, case: Case, layer: ModelLayer, heads: tuple[int, ...], owner: nn.Module):
        self.case, self.layer, self.heads, self.owner = case, layer, heads, owner
        self.weights = [weight for weight in owner.parameters() if weight.is_floating_point()]

    def made(self) -> tuple[Made, str]:
        """Return the weights that make the heads' vectors, and a side that none of them makes."""
        groups = self.layer.groups_of(self.heads)
        chosen = dict(zip(SIDES, (self.heads, groups, groups), strict=True))
        with differentiable(self.weights):
            sides = dict(zip(SIDES, layer_vectors(self.case, self.layer, self.owner), strict=True))
            own, foreign, counts = {}, _nothing(self.weights), {}
            for side, vectors in sides.items():
                own[side], counts[side] = self._read(vectors, chosen[side], foreign)
                if not any(bool(mask.any()) for mask in own[side].values()):
                    return Made({}), side
            slices, readers = _nothing(self.weights), frozenset[int]()
            for side, vectors in sides.items():
                alone = {weight: own[side][weight] & ~foreign[weight] for weight in self.weights}
                if not any(bool(mask.any()) for mask in alone.values()):
                    alone = _fewest_readers(own[side], counts[side])
                    readers |= self._readers(vectors, chosen[side], alone)
                for weight in self.weights:
                    slices[weight] |= alone[weight]
        return Made({w: mask for w, mask in slices.items() if bool(mask.any())}, readers), ""

    def _read(
        self, vectors: Tensor, chosen: tuple[int, ...], foreign: Slices
    ) -> tuple[Slices, Slices]:
        """Return what the chosen heads read of the weights, and how many heads read each."""
        own = _nothing(self.weights)
        counts = {w: torch.zeros_like(w, dtype=torch.int16) for w in self.weights}
        for unit in range(vectors.shape[1]):
            for weight, mask in _gradient(vectors[0, unit, 0], self.weights).items():
                counts[weight] += mask
                (own if unit in chosen else foreign)[weight] |= mask
        return own, counts

    def _readers(self, vectors: Tensor, chosen: tuple[int, ...], slices: Slices) -> frozenset[int]:
        """Return the other heads that read some weights."""
        size = self.layer.heads // vectors.shape[1]
        return frozenset(
            unit * size + head
            for unit in range(vectors.shape[1])
            if unit not in chosen
            for weight, mask in _gradient(vectors[0, unit, 0], self.weights).items()
            if bool((mask & slices[weight]).any())
            for head in range(size)
        )


def _nothing(weights: Sequence[nn.Parameter]) -> Slices:
    return {weight: torch.zeros_like(weight, dtype=torch.bool) for weight in weights}


def _fewest_readers(own: Slices, counts: Slices) -> Slices:
    fewest = min(int(counts[w][mask].min()) for w, mask in own.items() if bool(mask.any()))
    return {weight: mask & (counts[weight] == fewest) for weight, mask in own.items()}


def _gradient(vector: Tensor, weights: Sequence[nn.Parameter]) -> Slices:
    """Return the weights that one token's vector (D,) depends on.

    The first token: a rotary position of zero leaves its vector as the projection gave it.
    """
    if not vector.requires_grad:
        return {}
    factors = torch.rand_like(vector) + 0.5
    slopes = torch.autograd.grad(
        (vector * factors).sum(), weights, retain_graph=True, allow_unused=True
    )
    both = zip(weights, slopes, strict=True)
    return {weight: slope != 0 for weight, slope in both if slope is not None}


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
    with differentiable(weights), torch.enable_grad():
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
