"""What does a model give for one input in many worlds, each with edits of its own?

Worlds are rows of a batch. Those that begin to differ in the same layer run together, from that
layer on.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from torch import Tensor

from attention_atlas.edits.anatomy import Anatomy, anatomy
from attention_atlas.edits.edit import Edit
from attention_atlas.edits.inputs import Given, thaw
from attention_atlas.lab.replay import Outputs, Replay
from attention_atlas.models.encode import Encoded, collate, encode
from attention_atlas.models.load import Loaded
from attention_atlas.names.errors import ModelError

TOKENS = 2048  # in one batch, each with a logit for every word


@dataclass(frozen=True)
class Scene:
    """A model with one input, which runs in many worlds."""

    loaded: Loaded
    known: Anatomy
    given: Given
    item: Encoded
    tensors: dict[str, Tensor]

    @cached_property
    def replay(self) -> Replay:
        """Return the input as it ran plainly, which runs again in worlds."""
        return Replay(self.loaded, self.tensors, known=self.known)

    def logits(self, worlds: Sequence[Sequence[Edit]]) -> Iterator[Tensor]:
        """Yield the logits of the worlds, (1, N, V) or (1, labels), in order."""
        size = self.batch_size
        for _, group in groupby(worlds, self._start):
            several = list(group)
            for first in range(0, len(several), size):
                for outputs in self.replay.run(several[first : first + size]):
                    yield _logits(self.loaded, outputs)

    def _start(self, edits: Sequence[Edit]) -> int:
        return self.replay.start(edits) if self.replay.restarts else 0

    @property
    def plain(self) -> Tensor:
        """Return the logits of the plain model."""
        return _logits(self.loaded, self.replay.plain)

    def run(self, edits: Sequence[tuple[range, Edit]], worlds: int) -> Tensor:
        """Run so many worlds in one batch, with edits (their worlds, edit); return the logits."""
        rows = [rows for rows, _ in edits]
        outputs = self.replay.forward([edit for _, edit in edits], worlds, 0, rows)
        return _logits(self.loaded, outputs)

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


def _logits(loaded: Loaded, outputs: Outputs) -> Tensor:
    if "logits" not in outputs:
        raise ModelError(
            f"{type(loaded.model).__name__} predicts nothing, so it has no answer; give a model "
            "with its language head or classifier"
        )
    return outputs["logits"]
