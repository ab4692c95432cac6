"""What does a model give for one input, plainly and with edits, under equal conditions?"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from attention_atlas.edits.anatomy import Anatomy, ModelLayer
from attention_atlas.edits.apply import editing
from attention_atlas.edits.edit import Edit, Stage
from attention_atlas.edits.hooks import Stack
from attention_atlas.edits.inputs import Given
from attention_atlas.edits.prove.projection import Projection, Ran, run_to_projection
from attention_atlas.models.load import Loaded
from attention_atlas.record.watch.setting import Setting

Editing = Callable[[Loaded, Sequence[Edit], Anatomy], AbstractContextManager[Stack]]


@dataclass(frozen=True)
class Case:
    """A model with one input, and how it is edited."""

    loaded: Loaded
    known: Anatomy
    given: Given
    tensors: dict[str, Tensor]
    editing: Editing = editing
    projections: dict[ModelLayer, Projection] = field(default_factory=dict)  # as far as found

    def plain(self, by_weights: bool = False) -> list[Tensor]:
        """Return all tensors that the model gives for the input.

        by_weights  with the model's own eager attention, as edits of weights run it
        """
        with self._setting(by_weights).held():
            return list(tensors_of(self.loaded.model(**self.tensors)))

    def edited(self, edits: Sequence[Edit]) -> list[Tensor]:
        """Return all tensors that the model gives for the input with edits."""
        by_weights = any(edit.stage == Stage.weights for edit in edits)
        with (
            self._setting(by_weights).held(),
            self.editing(self.loaded, edits, self.known),
        ):
            return list(tensors_of(self.loaded.model(**self.tensors)))

    def at(self, layer: ModelLayer, edits: Sequence[Edit], worlds: int = 1) -> list[Ran]:
        """Return what runs after a layer's attention, in order, with edits.

        worlds  how often the input is in the batch; an edit's `inputs` says in which of them it is
        """
        tensors = {name: _repeated(tensor, worlds) for name, tensor in self.tensors.items()}
        with (
            self._setting(False).held(),
            self.editing(self.loaded, edits, self.known) as stack,
        ):
            return run_to_projection(self.loaded.model, tensors, layer, stack)

    def can_repeat(self, layer: ModelLayer) -> bool:
        """Tell whether the input can be in a batch several times, for a layer."""
        alike = all(tensor.dim() and len(tensor) == 1 for tensor in self.tensors.values())
        return alike and not layer.parts and not self.known.alone

    def _setting(self, by_weights: bool) -> Setting:
        fused = self.known.fast and not by_weights
        return Setting(self.loaded.model, "sdpa" if fused else "eager")


def tensors_of(output: Any) -> Iterator[Tensor]:
    """Yield the tensors of numbers in a model's output, which may be nested."""
    if isinstance(output, Tensor):
        if output.is_floating_point():
            yield output.detach().clone()
    elif hasattr(output, "items"):
        for value in dict(output.items()).values():
            yield from tensors_of(value)
    elif isinstance(output, list | tuple):
        for value in output:
            yield from tensors_of(value)


def _repeated(tensor: Tensor, times: int) -> Tensor:
    return tensor if times == 1 else tensor.expand(times, *tensor.shape[1:]).contiguous()
