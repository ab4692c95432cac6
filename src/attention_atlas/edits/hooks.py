"""How are edits applied at the door?

Two hooks: the first applies what comes before the recorder (vectors, mask, weights), the second
what comes after it (output). So a captured atlas has the attention that the edited model computed,
and its receipt compares that attention with what it moved, before an edit of the output.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import get_ident
from typing import Any

from torch import Tensor, nn

from attention_atlas.edits.anatomy import ModelLayer
from attention_atlas.edits.edit import Edit, Stage
from attention_atlas.edits.here import Batch, Here
from attention_atlas.edits.inputs import Given
from attention_atlas.edits.reference import Parts, Reference, Site
from attention_atlas.record.watch.door import Passing


@dataclass(frozen=True)
class Bound:
    """An edit, and what it is in one model."""

    edit: Edit
    heads: dict[ModelLayer, tuple[int, ...]]
    reference: Reference | None
    world: range | None = None  # the rows of the batch that it may change; None: all


class Stack:
    """The edits of one model, in the order in which they are applied."""

    def __init__(self, bound: Sequence[Bound]):
        self.bound = tuple(bound)
        self.paused = False  # inside another block of the same model
        self.on_batch: Callable[[Batch], None] = lambda _batch: None
        self.on_call: Callable[[Passing], None] = lambda _passing: None
        self.numbers: tuple[int, ...] | None = None  # of the inputs in the batch, in a capture
        self.own: dict[int, Given] = {}
        self.batch = Batch(1)
        ordered = sorted(bound, key=lambda each: each.edit.stage)  # stable: the order of the list
        self._by_site: dict[Site, list[tuple[Bound, ModelLayer]]] = {}
        for each in ordered:
            for layer in each.heads:
                site = layer.module, layer.visit
                self._by_site.setdefault(site, []).append((each, layer))
        self.needs_weights = any(each.edit.stage == Stage.weights for each in bound)
        self._here: list[Here] = []
        self._parts = Parts()
        self.first, self.second = Inside(self), Outside(self)

    def enter(self, passing: Passing) -> list[Here]:
        """Return this call as each of its edits sees it, in their order."""
        site = passing.site.module, passing.site.visit
        here = [] if self.paused else self._by_site.get(site, [])
        part = self._parts.of(passing.site)
        self._here = [_here(bound, layer, passing, self.batch, part) for bound, layer in here]
        return self._here

    @property
    def here(self) -> list[Here]:
        """Return what `enter` gave for the call that is running."""
        return self._here

    @contextmanager
    def told(self, model: nn.Module) -> Iterator[None]:
        """Note the batch and the length of the cache at each pass of the model in this thread."""
        thread = get_ident()

        def note(_model: nn.Module, args: tuple[Any, ...], given: dict[str, Any]) -> None:
            if get_ident() == thread:
                self.batch = Batch(_size(args, given), self.numbers, _past(given), self.own)
                self.on_batch(self.batch)

        hook = model.register_forward_pre_hook(note, with_kwargs=True)
        try:
            yield
        finally:
            hook.remove()


class Inside:
    """The hook that applies edits of vectors, mask and weights."""

    def __init__(self, stack: Stack):
        self.stack = stack
        self.needs_weights = stack.needs_weights

    def before(self, passing: Passing) -> None:
        """Change query, key, value and mask."""
        for here in self.stack.enter(passing):
            here.edit.before(passing, here)

    def after(self, passing: Passing) -> None:
        """Change the weights."""
        for here in self.stack.here:
            here.edit.weights(passing, here)


class Outside:
    """The hook that applies edits of what the heads move."""

    needs_weights = False

    def __init__(self, stack: Stack):
        self.stack = stack

    def before(self, passing: Passing) -> None:
        """Do nothing: these edits come after attention."""

    def after(self, passing: Passing) -> None:
        """Change the output."""
        for here in self.stack.here:
            here.edit.output(passing, here)
        self.stack.on_call(passing)


def _here(bound: Bound, layer: ModelLayer, passing: Passing, batch: Batch, part: int) -> Here:
    queries, keys = passing.query.shape[2], passing.key.shape[2]
    # A tower that keeps no cache, as an encoder, has as many keys as queries.
    first = batch.past if layer.cross or keys != queries else 0
    in_window = not layer.cross and keys <= first + queries  # else the cache has empty places
    first_key = first + queries - keys if first and in_window else 0
    # A cache of fixed length has places for tokens that are still to come.
    length = keys if layer.cross else min(keys, batch.past + queries)
    heads = bound.heads[layer]
    return Here(
        bound.edit, layer, heads, batch, first, first_key, length, part, bound.reference,
        bound.world,
    )  # fmt: skip


def _size(args: tuple[Any, ...], given: dict[str, Any]) -> int:
    """Return how many inputs a pass has, from the first of its tensors that has a row for each."""
    named = [given.get(name) for name in ("input_ids", "decoder_input_ids", "inputs_embeds")]
    tensors = (value for value in (*named, *args, *given.values()) if isinstance(value, Tensor))
    return next((len(tensor) for tensor in tensors if tensor.dim() > 1), 1)


def _past(given: dict[str, Any]) -> int:
    cache: Any = given.get("past_key_values")
    return int(cache.get_seq_length()) if hasattr(cache, "get_seq_length") else 0
