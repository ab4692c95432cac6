"""Which attention layers has a model, and how is its attention reached?

Asked of the model by running a few inputs, as for a receipt; remembered as long as the model lives.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

from attention_atlas.models.encode import Encoded
from attention_atlas.models.exclusive import EXCLUSIVE
from attention_atlas.models.load import Loaded
from attention_atlas.names.errors import ModelError
from attention_atlas.record.prove.check import sample_inputs
from attention_atlas.record.prove.receipt import Trial
from attention_atlas.record.prove.shorten import try_shortened
from attention_atlas.record.watch.layers import LayerCalls

DOORS = ("named", "eager")  # ways in which all attention passes through the door


@dataclass(frozen=True)
class ModelLayer:
    """One attention layer of a model."""

    tower: str
    number: int
    module: str
    visit: int
    heads: int
    groups: int
    width: int  # of a query or key
    value_width: int
    cross: bool
    parts: bool  # one input runs in several softmaxes, so its tokens cannot be addressed

    def name(self, head: int) -> str:
        """Return the name of a head, with its tower."""
        return f"{self.tower}.L{self.number}H{head}"

    def sharing(self, head: int) -> range:
        """Return the heads that share the key and value of a head, itself too."""
        size = self.heads // self.groups
        return range(head // size * size, head // size * size + size)

    def groups_of(self, heads: tuple[int, ...]) -> tuple[int, ...]:
        """Return the groups of some heads."""
        size = self.heads // self.groups
        return tuple(sorted({head // size for head in heads}))


@dataclass(frozen=True)
class Anatomy:
    """The layers of a model, and how its attention is reached."""

    way: str
    fast: bool
    alone: bool  # inputs run one at a time
    layers: tuple[ModelLayer, ...]

    @cached_property
    def towers(self) -> tuple[str, ...]:
        """Return the names of the towers."""
        return tuple(dict.fromkeys(layer.tower for layer in self.layers))

    @cached_property
    def by_site(self) -> dict[tuple[str, int], ModelLayer]:
        """Return the layers by module and visit."""
        return {(layer.module, layer.visit): layer for layer in self.layers}


def anatomy_of(trial: Trial, batch: int) -> Anatomy:
    """Return the anatomy of a model that was tried, with batches of so many inputs."""
    layers = tuple(
        _layer(layer, trial, 1 if trial.alone else batch)
        for layer in trial.layers
        if layer.first.query.shape[-1]
    )
    return Anatomy(trial.way, trial.fast, trial.alone, layers)


def _layer(calls: LayerCalls, trial: Trial, batch: int) -> ModelLayer:
    first = calls.first
    several = len(calls.steps[0]) > 1 or len(first.query) != batch
    return ModelLayer(
        trial.names[calls.tower_key], calls.number, first.module, first.visit,
        first.query.shape[1], first.key.shape[1], first.query.shape[3],
        first.value.shape[3], first.cross, several,
    )  # fmt: skip


# Which towers run depends on the kinds of tensors that are given: a text, a text with a picture.
_known: WeakKeyDictionary[Any, dict[frozenset[str], Anatomy]] = WeakKeyDictionary()


def anatomy(loaded: Loaded, items: Sequence[Encoded] = ()) -> Anatomy:
    """Return the anatomy of a model, on given inputs or a few sample inputs."""
    with EXCLUSIVE:
        known = _known.setdefault(loaded.model, {})
        kinds = frozenset(name for item in items for name in item.tensors)
        if kinds not in known:
            tried = list(items) or sample_inputs(loaded, 0)
            known[kinds] = anatomy_of(try_shortened(loaded, tried), len(tried))
        if known[kinds].way == "outputs":
            raise ModelError(
                f"{type(loaded.model).__name__} gives its weights alone, so nothing of its "
                "attention can be edited"
            )
        return known[kinds]
