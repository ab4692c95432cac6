"""What does a model give in many worlds, each with edits of its own, at the least cost?

One plain pass over a batch of inputs keeps what each block gives. Then all worlds run in one batch,
from the block of the first edited layer on: blocks before it give what they gave. All else, such as
embeddings, masks, norms and the head, is the model's own forward pass.

Rows of a batch of worlds are computed together, and torch's sums may be ordered otherwise for
another size of the batch. So a world equals `with aa.edit` bit for bit where the order is the same,
else to a rounding for each sum of each layer that runs. Whether a model can be restarted is tried
once, with an edit; where it cannot (shared layers, no list of layers), worlds are whole passes.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from attention_atlas.edits.anatomy import Anatomy, ModelLayer, anatomy
from attention_atlas.edits.apply import editing
from attention_atlas.edits.edit import Edit
from attention_atlas.edits.inputs import Given
from attention_atlas.edits.names import heads_by_layer
from attention_atlas.edits.scale import scale
from attention_atlas.edits.table import read_edits
from attention_atlas.lab.blocks import KeptOutputs, giving, keeping_blocks, repeated
from attention_atlas.models.encode import encode
from attention_atlas.models.exclusive import EXCLUSIVE
from attention_atlas.models.inputs import read_inputs
from attention_atlas.models.load import Loaded
from attention_atlas.models.signature import signature
from attention_atlas.record.prove.layer_errors import bound_of
from attention_atlas.record.watch.setting import Setting

ROWS = 256  # of one batch, worlds times inputs, unless one world alone has more
Outputs = dict[str, Tensor]  # the tensors of a model's output that have a row for each input

# Whether a model can be restarted, by the kinds of tensors that it is given.
_restartable: WeakKeyDictionary[Any, dict[frozenset[str], bool]] = WeakKeyDictionary()


class Replay:
    """A batch of inputs that ran once plainly, and runs again in worlds with edits.

    tensors  what the model is given, on its device
    corpus   the reference inputs of edits that name none
    """

    def __init__(
        self,
        loaded: Loaded,
        tensors: Mapping[str, Tensor],
        corpus: Sequence[Given] = (),
        known: Anatomy | None = None,
    ):
        self.loaded, self.corpus = loaded, corpus
        self.tensors = dict(tensors)
        self.known = known or _anatomy(loaded, self.tensors)
        self.size = max((len(tensor) for tensor in tensors.values() if tensor.dim()), default=1)
        options = {"use_cache": False} if "use_cache" in signature(loaded.model).names else {}
        self.call: Callable[..., Any] = partial(loaded.model, **options)
        with self.held(), editing(loaded, [], self.known), keeping_blocks(loaded.model) as kept:
            self.plain: Outputs = _outputs(self.call(**self.tensors), self.size)
        self._kept: KeptOutputs = kept
        self.blocks = list(kept.gave)  # blocks as they ran
        self.starts = self._starts()

    @property
    def together(self) -> bool:
        """Tell whether several worlds can run in one batch."""
        alike = all(tensor.dim() and len(tensor) == self.size for tensor in self.tensors.values())
        return alike and not self.known.alone and not any(x.parts for x in self.known.layers)

    @property
    def restarts(self) -> bool:
        """Tell whether passes can start at an edited layer; tried once for each model."""
        with EXCLUSIVE:
            tried = _restartable.setdefault(self.loaded.model, {})
            kinds = frozenset(self.tensors)
            if kinds not in tried:
                tried[kinds] = self.together and bool(self.starts) and self._restarts_truly()
            return tried[kinds]

    def run(self, worlds: Sequence[Any]) -> list[Outputs]:
        """Return what the model gives in each world, a list of edits or of their JSON.

        An edit's `inputs` are rows of the batch of this replay.
        """
        asked = [read_edits(edits) for edits in worlds]
        if not self.together:
            return [self._alone(edits) for edits in asked]
        several = max(1, ROWS // self.size)
        outputs: list[Outputs] = []
        for first in range(0, len(asked), several):
            part = asked[first : first + several]
            edits = [edit for world in part for edit in world]
            rows = [self.rows(world) for world, each in enumerate(part) for _ in each]
            start = self.start(edits) if self.restarts else 0
            outputs += self.split(self.forward(edits, len(part), start, rows))
        return outputs

    def rows(self, world: int) -> range:
        """Return the rows of a world in a batch of worlds."""
        return range(world * self.size, (world + 1) * self.size)

    def split(self, outputs: Outputs) -> list[Outputs]:
        """Return the outputs of each world, given those of a batch of worlds."""
        worlds = len(next(iter(outputs.values()))) // self.size if outputs else 0
        return [
            {name: tensor[slice(rows.start, rows.stop)] for name, tensor in outputs.items()}
            for rows in map(self.rows, range(worlds))
        ]

    def start(self, edits: Sequence[Edit]) -> int:
        """Return which block runs first with some edits, counted in the order of blocks."""
        touched = {layer for edit in edits for layer in heads_by_layer(edit.heads, self.known)}
        return min((self.starts[layer] for layer in touched), default=len(self.blocks))

    def forward(
        self, edits: Sequence[Edit], worlds: int, start: int, rows: Sequence[range] | None = None
    ) -> Outputs:
        """Run so many worlds in one batch, from a block on; return their outputs.

        rows  for each edit the rows that it may change; None: all
        """
        with (
            self.held(),
            editing(self.loaded, edits, self.known, self.corpus, rows) as stack,
            self.restarted(worlds, start) as tensors,
        ):
            stack.numbers = tuple(range(self.size)) * worlds
            return _outputs(self.call(**tensors), worlds * self.size)

    @contextmanager
    def restarted(self, worlds: int, start: int) -> Iterator[dict[str, Tensor]]:
        """Let passes start at a block, inside the block; yield the tensors of all worlds.

        Enter it last, inside `held` and `editing`: these may run other inputs first.
        """
        kept = {
            module: partial(repeated, self._kept.gave[module][0], worlds, self.size)
            for module in self.blocks[:start]
        }
        with giving(kept):
            yield {name: repeated(tensor, worlds) for name, tensor in self.tensors.items()}

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the model in the state in which it runs for us, inside the block."""
        with Setting(self.loaded.model, "sdpa" if self.known.fast else "eager").held():
            yield

    def _alone(self, edits: Sequence[Edit]) -> Outputs:
        with self.held(), editing(self.loaded, edits, self.known, self.corpus):
            return _outputs(self.call(**self.tensors), self.size)

    def _starts(self) -> dict[ModelLayer, int]:
        """Return in which block each attention layer is; nothing if some are in none, or shared."""
        names = {module: name for name, module in self.loaded.model.named_modules()}
        starts = {
            layer: number
            for layer in self.known.layers
            for number, module in enumerate(self.blocks)
            if f"{layer.module}.".startswith(f"{names[module]}.")
        }
        shared = any(layer.visit for layer in self.known.layers)
        whole = len(starts) == len(self.known.layers) and self._kept.once and not shared
        return starts if whole else {}

    def _restarts_truly(self) -> bool:
        """Compare worlds that start at a layer with whole passes, with and without an edit."""
        layers = sorted(self.starts, key=lambda layer: self.starts[layer])
        for layer in dict.fromkeys((layers[len(layers) // 2], layers[-1])):
            edit = scale(f"{layer.tower}.L{layer.number}", 0.5)
            rows = [self.rows(1)]
            part = self.split(self.forward([edit], 2, self.starts[layer], rows))
            bound = bound_of(self.loaded.model.dtype)
            if not (same(part[0], self.plain, bound) and same(part[1], self._alone([edit]), bound)):
                return False
        return True


def same(first: Outputs, second: Outputs, bound: float) -> bool:
    """Tell whether outputs differ by no more than `bound` times their largest number."""
    if {name: x.shape for name, x in first.items()} != {n: x.shape for n, x in second.items()}:
        return False
    for name, tensor in first.items():
        size = float(second[name].abs().max())
        if not float((tensor - second[name]).abs().max()) <= bound * size:
            return False
    return bool(first)


def _anatomy(loaded: Loaded, tensors: Mapping[str, Tensor]) -> Anatomy:
    given = read_inputs({name: tensor.cpu() for name, tensor in tensors.items()})
    return anatomy(loaded, [encode(loaded, each) for each in given[:2]])


def _outputs(output: Any, rows: int) -> Outputs:
    """Return the tensors of numbers in a model's output that have so many rows, by name."""
    named = output.items() if hasattr(output, "items") else enumerate(output)
    return {
        str(name): tensor.detach()
        for name, tensor in dict(named).items()
        if torch.is_tensor(tensor)
        and tensor.is_floating_point()
        and tensor.dim()
        and len(tensor) == rows
    }
