"""How are chosen heads trained while everything else stays as it is, to the last bit?

Gradients are zero outside of the heads' weights, and all other weights need none. Weight decay and
momentum move weights without a gradient too: so after each step of any torch optimizer the frozen
numbers of partly trained tensors are put back. An optimizer that is not torch's calls `hold`.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_post_hook

from attention_atlas.edits.anatomy import Anatomy, ModelLayer, anatomy
from attention_atlas.edits.edit import head_names
from attention_atlas.edits.inputs import freeze
from attention_atlas.edits.names import heads_by_layer
from attention_atlas.edits.prove.case import Case
from attention_atlas.edits.shared import refuse_shared
from attention_atlas.lab.local.slices import Slices, input_slices, output_slices
from attention_atlas.models.encode import collate, encode
from attention_atlas.models.exclusive import EXCLUSIVE
from attention_atlas.models.inputs import read_inputs
from attention_atlas.models.load import Loaded, load
from attention_atlas.names.errors import InputError
from attention_atlas.record.prove.check import sample_inputs

Chosen = dict[ModelLayer, tuple[int, ...]]


class OnlyHeads:
    """A model of which only some heads learn, until `restore` or the end of the block.

    slices   by the name of a parameter: which of its numbers learn, bool
    touches  the heads that read these numbers
    """

    def __init__(self, model: nn.Module, slices: Slices, touches: tuple[str, ...]):
        self.touches = touches
        self._slices = slices
        names = {weight: name for name, weight in model.named_parameters()}
        self.slices = {names[weight]: mask for weight, mask in slices.items()}
        self._kept = {weight: weight.detach().clone() for weight in slices}
        every = list(model.parameters())
        self._needed = [(weight, weight.requires_grad) for weight in every]
        self._slopes = [(weight, weight.grad) for weight in every if weight not in slices]
        for weight in every:
            if weight.is_floating_point():
                weight.requires_grad_(weight in slices)
            if weight not in slices:
                weight.grad = None  # an optimizer would still follow it
        self._handles: list[Any] = [
            weight.register_hook(_only(mask))  # type: ignore[no-untyped-call]
            for weight, mask in slices.items()
        ]
        self._handles.append(register_optimizer_step_post_hook(self._after_step))

    def parameters(self) -> Iterator[nn.Parameter]:
        """Yield the parameters of which a part learns, for an optimizer."""
        yield from self._slices

    def hold(self) -> None:
        """Put back every number that must not learn; torch's optimizers do so after each step."""
        with torch.no_grad():
            for weight, mask in self._slices.items():
                kept = self._kept[weight].to(weight.device)
                weight.copy_(torch.where(mask.to(weight.device), weight, kept))

    def _after_step(self, optimizer: torch.optim.Optimizer, *_given: Any) -> None:
        moved = {id(weight) for group in optimizer.param_groups for weight in group["params"]}
        if moved & {id(weight) for weight in self._slices}:
            self.hold()

    def restore(self) -> None:
        """Let all of the model learn as before; what the heads have learnt stays."""
        while self._handles:
            self._handles.pop().remove()
        for weight, needed in self._needed:
            weight.requires_grad_(needed)
        for weight, slope in self._slopes:
            weight.grad = slope
        self._needed, self._slopes = [], []

    def __enter__(self) -> "OnlyHeads":
        return self

    def __exit__(self, *_problem: Any) -> None:
        self.restore()


def _only(mask: Tensor) -> Callable[[Tensor], Tensor]:
    def masked(slope: Tensor) -> Tensor:
        return slope.masked_fill(~mask.to(slope.device), 0)

    return masked


def only_heads(
    model: Any, heads: Any, tokenizer: Any = None, *, shared: bool = False, inputs: Any = None
) -> OnlyHeads:
    """Let only some heads of a model learn; return what restores it, also as a `with` block.

    shared  train also keys, values or whole weights that heads which are not named read too
    inputs  an input that the model takes, where it has no sample inputs
    """
    loaded = model if isinstance(model, Loaded) else load(model, tokenizer)
    with EXCLUSIVE:
        given = [] if inputs is None else read_inputs(inputs)[:1]
        items = [encode(loaded, each) for each in given]
        known = anatomy(loaded, items)
        chosen = heads_by_layer(head_names(heads), known)
        refuse_shared("key", chosen, shared)
        item = items[0] if items else sample_inputs(loaded, 0)[0]
        tensors, _ = collate([item], loaded)
        case = Case(loaded, known, freeze(item.tensors), tensors)
        slices: Slices = {}
        readers: Chosen = {}
        for layer, several in chosen.items():
            made = input_slices(case, layer, several)
            readers[layer] = (*several, *made.readers)
            for found in (made.slices, output_slices(case, layer, several)):
                for weight, mask in found.items():
                    slices[weight] = slices[weight] | mask if weight in slices else mask
        touches = _touched(loaded.model, known, readers, slices)
        _refuse_tied(chosen, touches, shared)
    return OnlyHeads(loaded.model, slices, touches)


def _touched(model: Any, known: Anatomy, readers: Chosen, slices: Slices) -> tuple[str, ...]:
    """Return the heads that read the weights: the readers, their groups, and in tied layers."""
    numbers: dict[ModelLayer, set[int]] = {}
    for layer, heads in readers.items():
        group = {other for head in heads for other in layer.sharing(head)}
        for other in known.layers:
            if other == layer or _same_weights(model, layer, other, slices):
                numbers.setdefault(other, set()).update(group)
    return tuple(
        layer.name(head) for layer in known.layers for head in sorted(numbers.get(layer, ()))
    )


def _same_weights(model: Any, layer: ModelLayer, other: ModelLayer, slices: Slices) -> bool:
    own, others = (
        {id(weight) for weight in model.get_submodule(each.module).parameters()}
        for each in (layer, other)
    )
    return bool(own & others & {id(weight) for weight in slices})


def _refuse_tied(chosen: Chosen, touches: tuple[str, ...], shared: bool) -> None:
    named = {layer.name(head) for layer, heads in chosen.items() for head in heads}
    more = [name for name in touches if name not in named]
    if more and not shared:
        raise InputError(
            f"{', '.join(sorted(named))} shares weights with {', '.join(more)}; name them too, or "
            "say shared=True to train them all"
        )
