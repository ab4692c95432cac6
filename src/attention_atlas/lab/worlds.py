"""What does a model give for one input in many worlds, each with edits of its own?

Worlds are rows of a batch: the input is repeated, and the edits of a world name its row.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from attention_atlas.edits.anatomy import Anatomy, anatomy
from attention_atlas.edits.apply import editing
from attention_atlas.edits.edit import Edit, Stage
from attention_atlas.edits.inputs import Given, thaw
from attention_atlas.lab.answers import logits_of
from attention_atlas.models.encode import Encoded, collate, encode
from attention_atlas.models.load import Loaded
from attention_atlas.record.watch.setting import Setting

TOKENS = 4096  # in one batch


@dataclass(frozen=True)
class Scene:
    """A model with one input, which runs in many worlds."""

    loaded: Loaded
    known: Anatomy
    given: Given
    item: Encoded
    tensors: dict[str, Tensor]

    def logits(self, worlds: Sequence[Sequence[Edit]]) -> Iterator[Tensor]:
        """Yield the logits of the worlds, in order, batch by batch."""
        size = self.batch_size
        by_weights = any(edit.stage == Stage.weights for world in worlds for edit in world)
        for first in range(0, len(worlds), size):
            batch = worlds[first : first + size]
            edits = [
                edit if len(batch) == 1 else replace(edit, inputs=(row,))
                for row, world in enumerate(batch)
                for edit in world
            ]
            yield self.run(edits, len(batch), by_weights)

    def run(self, edits: Sequence[Edit], worlds: int = 1, by_weights: bool = False) -> Tensor:
        """Run the input in so many worlds, with edits that name their rows; return the logits.

        by_weights  run the model's own eager attention, as edits of weights do
        """
        tensors = {name: _repeated(tensor, worlds) for name, tensor in self.tensors.items()}
        fused = self.known.fast and not by_weights
        setting = Setting(self.loaded.model, "sdpa" if fused else "eager")
        with setting.held(), editing(self.loaded, edits, self.known):
            return logits_of(self.loaded, self.loaded.model(**tensors))

    @property
    def batch_size(self) -> int:
        """Return how many worlds run together."""
        alike = all(tensor.dim() and len(tensor) == 1 for tensor in self.tensors.values())
        parts = any(layer.parts for layer in self.known.layers)
        if self.known.alone or parts or not alike:
            return 1
        length = max((len(tokens) for tokens in self.item.streams.values()), default=64)
        return max(1, TOKENS // max(length, 1))


def scene(loaded: Loaded, given: Given) -> Scene:
    """Return a model with an input, ready to run in many worlds."""
    item = encode(loaded, thaw(given))
    tensors, _ = collate([item], loaded)
    return Scene(loaded, anatomy(loaded, [item]), given, item, tensors)


def _repeated(tensor: Tensor, times: int) -> Tensor:
    return tensor if times == 1 else tensor.expand(times, *tensor.shape[1:]).contiguous()
