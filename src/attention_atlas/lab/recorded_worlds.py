"""What does a model give for one input with edits, and which attention does it use then?

A world is one run of the input: plain, or with edits. Its attention is recorded from the run
itself, after the edits of vectors, masks and weights, as in the capture of an edited model. A world
with edits runs from the first edited layer on; the layers before it are those of the plain world.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from attention_atlas.edits.anatomy import anatomy
from attention_atlas.edits.apply import opened
from attention_atlas.edits.bind import bind
from attention_atlas.edits.edit import Edit, Stage
from attention_atlas.edits.hooks import Bound, Stack
from attention_atlas.edits.inputs import Given
from attention_atlas.edits.watch import watching_edited
from attention_atlas.lab.replay import Replay
from attention_atlas.models.encode import Encoded, collate
from attention_atlas.models.exclusive import EXCLUSIVE
from attention_atlas.models.generation import write_greedily
from attention_atlas.models.load import Loaded
from attention_atlas.record.places.streams import Ends, real_ends
from attention_atlas.record.watch.call import Call
from attention_atlas.record.watch.layers import layers_of
from attention_atlas.record.watch.pieces import Forms, Piece, pieces
from attention_atlas.record.watch.setting import Setting
from attention_atlas.record.write.shard_tensors import LayerName, ShardPieces
from attention_atlas.store.files import Array
from attention_atlas.store.manifest import Tower

_KEPT = ("query", "key", "value")


@dataclass(frozen=True)
class World:
    """What a model gave in one run of an input: its outputs, and its attention by layer.

    attention  by tower and number: the tensors of a shard with this layer and input alone
    """

    outputs: Any
    attention: Mapping[LayerName, Mapping[str, Array]]


class Worlds:
    """One input, read by a model plainly or with edits."""

    def __init__(self, loaded: Loaded, item: Encoded, towers: Sequence[Tower]):
        self.loaded, self.item = loaded, item
        self.known = anatomy(loaded, [item])
        self.tensors, self.real = collate([item], loaded)
        self._ends = {
            (tower.name, layer.layer): Ends(layer.queries, layer.keys)
            for tower in towers
            for layer in tower.layers
        }
        self._plain: dict[bool, World] = {}

    def bind(self, edits: Sequence[Edit], corpus: Sequence[Given] = ()) -> list[Bound]:
        """Find the heads of edits, and run their reference inputs; return the bound edits."""
        return bind(self.loaded, edits, self.known, corpus)

    def plain(self, by_weights: bool = False) -> World:
        """Return the run without edits; it is kept.

        by_weights  with the model's own eager attention, as edits of weights run it
        """
        if by_weights not in self._plain:
            self._plain[by_weights] = self._run(Stack(()), by_weights)
        return self._plain[by_weights]

    def edited(self, bound: Sequence[Bound]) -> World:
        """Return the run with edits."""
        by_weights = needs_weights(bound)
        plain, replay = self.plain(by_weights), self._replay
        start = replay.start([each.edit for each in bound]) if replay.restarts else 0
        with EXCLUSIVE, replay.restarted(1, start):
            world = self._run(Stack(bound), by_weights)
        return replace(world, attention={**plain.attention, **world.attention})

    @cached_property
    def _replay(self) -> Replay:
        return Replay(self.loaded, self.tensors, known=self.known)

    def _run(self, stack: Stack, by_weights: bool) -> World:
        given: list[Any] = []
        call = self._replay.call  # made here: its own plain pass must not be recorded
        fast = self.known.fast and not by_weights
        watch = watching_edited(self.loaded.model, stack, self.known.way, fast=fast)
        calls = watch(self.tensors, lambda **tensors: given.append(call(**tensors)))
        return World(given[0], self._attention(calls))

    def _attention(self, calls: list[Call]) -> dict[LayerName, dict[str, Array]]:
        """Return the recorded calls as tensors, layer by layer."""
        recorded, forms = {}, Forms()
        for layer in layers_of(calls):
            known = self.known.by_site.get((layer.first.module, layer.first.visit))
            name = (known.tower, known.number) if known else ("", -1)
            if name not in self._ends:
                continue  # it is not in the atlas
            shard = ShardPieces(_KEPT)
            places = real_ends(self._ends[name], self.real, 0)
            parts = pieces(layer, 0, 1, *places, forms)
            shard.pieces[name][0] = [_in_float(piece) for piece in parts]
            shard.calls[name] = layer.first
            recorded[name] = {key: np.asarray(tensor) for key, tensor in shard.tensors().items()}
        return recorded

    @property
    def length(self) -> int:
        """Get how many tokens stand before the first that is written; 0 with an encoder."""
        ids = self.tensors.get("input_ids")
        return 0 if ids is None or "decoder_input_ids" in self.tensors else ids.shape[1]

    def write(self, bound: Sequence[Bound], new: int) -> list[int]:
        """Let the model write at most `new` tokens after the input with edits; return their ids."""
        two_sided = "decoder_input_ids" in self.tensors
        given = {
            name: tensor
            for name, tensor in self.tensors.items()
            if not (two_sided and name.startswith("decoder_"))
        }
        fused = self.known.fast and not needs_weights(bound)
        with (
            Setting(self.loaded.model, "sdpa" if fused else "eager").held(),
            opened(self.loaded.model, Stack(bound), self.known),
        ):
            # The last token that is written is not returned, so one more is asked for.
            ids = write_greedily(self.loaded.model, given, new + 1)
        return ids[1:] if two_sided else ids[self.length :]


def needs_weights(bound: Sequence[Bound]) -> bool:
    """Tell whether some edit changes weights, so that the model runs its own eager attention."""
    return any(each.edit.stage == Stage.weights for each in bound)


def _in_float(piece: Piece) -> Piece:
    """Return a piece in float32, which NumPy can read whatever the model's precision is."""
    return replace(
        piece, query=piece.query.float(), key=piece.key.float(), value=piece.value.float()
    )
