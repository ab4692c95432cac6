"""Are the weights of an edited run those that the edit asked for?"""

from collections.abc import Callable

import torch

from attention_atlas.edits.anatomy import ModelLayer
from attention_atlas.edits.bind import bind
from attention_atlas.edits.edit import Edit
from attention_atlas.edits.hooks import Stack
from attention_atlas.edits.mask import mask
from attention_atlas.edits.pattern import pattern
from attention_atlas.edits.prove.case import Case
from attention_atlas.edits.prove.found import Found, bound, over_layers
from attention_atlas.edits.watch import watching_edited
from attention_atlas.names.errors import ModelError
from attention_atlas.record.prove.layer_errors import relative_error, worst
from attention_atlas.record.watch.call import Call
from attention_atlas.record.watch.layers import layers_of
from attention_atlas.record.watch.pieces import Forms, Piece, pieces
from attention_atlas.record.watch.ways import observe


def read_back(case: Case) -> Found:
    """Compare the weights that a run has, and what they move, with the pattern that was set."""
    return over_layers(case, _beside(case, lambda head: pattern(head, "even"), _off), bound(case))


def renormalised(case: Case) -> Found:
    """Compare the weights without the first token with those of a plain run, shared out anew."""
    hidden = _beside(case, lambda head: mask(head, token=0, empty="keep"), _off_without_first)
    return over_layers(case, hidden, bound(case))


def _beside(
    case: Case, edit_of: Callable[[str], Edit], compare: Callable[[Piece, Piece], float]
) -> Callable[[Case, ModelLayer], float]:
    """Return a check that compares a layer whose first head is edited with the plain layer."""
    way = case.known.way
    plain = _whole(observe(case.loaded.model, case.tensors, way, detail=True))

    def of_layer(case: Case, layer: ModelLayer) -> float:
        if layer.parts:
            raise ModelError(f"{layer.name(0)} runs an input in parts")
        stack = Stack(bind(case.loaded, [edit_of(layer.name(0))], case.known))
        watch = watching_edited(case.loaded.model, stack, way, detail=True)
        site = layer.module, layer.visit
        return compare(_whole(watch(case.tensors))[site], plain[site])

    return of_layer


def _off_without_first(edited: Piece, plain: Piece) -> float:
    """Return how far the first head is from its plain weights without the first token.

    They are divided by what is left, which may be little; so the error is multiplied by it.
    """
    assert edited.weights is not None and plain.weights is not None
    before, after = plain.weights[0].double().cpu(), edited.weights[0].double().cpu()
    left = 1 - before[:, :1]
    seen = torch.from_numpy(plain.form.visible(*before.shape)[0])
    rows = seen[:, 1:].any(-1)  # a row that sees nothing else looks as before
    expected = torch.cat([torch.zeros_like(left), before[:, 1:]], 1)
    return float((after * left - expected)[rows].abs().max()) if bool(rows.any()) else 0.0


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
