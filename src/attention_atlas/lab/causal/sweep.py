"""How much does each head change the loss of each input? Exactly: every head is exchanged.

All heads of a layer run as worlds of one batch that starts at that layer (`lab.replay`).

total   loss with what the head moves exchanged, less the plain loss
direct  the same with all that comes after the head frozen as in the plain run (`frozen`)
"""

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from attention_atlas.edits.anatomy import Anatomy, ModelLayer
from attention_atlas.edits.apply import editing
from attention_atlas.lab.blocks import KeptOutputs, giving, keeping
from attention_atlas.lab.causal.exchange import Exchange, Moved, Pool
from attention_atlas.lab.causal.frozen import Freezing, Gives, find_freezing, gives
from attention_atlas.lab.causal.task import (
    Group,
    PredictionTask,
    losses,
    only_counted,
    with_own_answers,
)
from attention_atlas.lab.replay import Replay
from attention_atlas.measure.arrays import Floats
from attention_atlas.models.load import Loaded
from attention_atlas.names.errors import AtlasError
from attention_atlas.record.prove.layer_errors import bound_of
from attention_atlas.record.watch.setting import Setting


@dataclass
class Sweep:
    """A model whose heads are exchanged, and what was found out about it."""

    loaded: Loaded
    task: PredictionTask
    known: Anatomy
    pool: Pool
    tokens: int  # of one batch of worlds
    head: nn.Module | None = None  # makes logits of hidden states, if it can be given some of them
    freezing: Freezing | None = None
    no_direct: str = ""  # why there are no direct effects

    def look(self, first: Group) -> None:
        """Find out on one group how the model can be run."""
        replay = Replay(self.loaded, first.tensors, known=self.known)
        if self.task.kind != "label":
            self.head = self._head(replay, first)
        try:
            self.freezing = find_freezing(replay)
        except AtlasError as problem:
            self.no_direct = f"direct effects of {self.loaded.name} are not known: {problem}"

    def _head(self, replay: Replay, group: Group) -> nn.Module | None:
        """Return the module that makes logits, if it can be given only the places that count."""
        head: Any = self.loaded.model.get_output_embeddings()
        if head is None or not replay.together:
            return None
        plain = replay.plain["logits"][group.counted]
        try:
            with replay.held(), only_counted(head, group.counted, 1):
                some = replay.call(**replay.tensors).logits
        except (RuntimeError, IndexError, ValueError):  # it needs all places
            return None
        bound = bound_of(self.loaded.model.dtype) * float(plain.abs().max())
        alike = some.shape == plain.shape and float((some - plain).abs().max()) <= bound
        return head if alike else None

    def add_reference(self, group: Group) -> None:
        """Run inputs plainly and keep what their heads move, for others to take."""
        moved = Moved()
        with (
            Setting(self.loaded.model, "sdpa" if self.known.fast else "eager").held(),
            editing(self.loaded, [], self.known) as stack,
        ):
            stack.on_call = moved.keep
            self.loaded.model(**group.tensors)
        self.pool.add(group.numbers, moved)

    def run(self, group: Group, direct: bool = True) -> tuple[Floats, Floats]:
        """Return total and direct effects of all heads on a group, both (B, heads)."""
        frozen = KeptOutputs()
        with ExitStack() as undo:
            if direct and self.freezing is not None:
                frozen = undo.enter_context(keeping(self.freezing.matrices))
            replay = Replay(self.loaded, group.tensors, known=self.known)
        if self.task.kind == "label":
            group = with_own_answers(group, replay.plain["logits"])
        plain = losses(by_place(replay.plain["logits"]), group)[0]
        parts = [self._layer(replay, group, layer, frozen) for layer in self.known.layers]
        totals, directs = (torch.cat(several) for several in zip(*parts, strict=True))
        total, straight = ((x - plain).T.cpu().numpy() for x in (totals, directs))
        return total, straight

    def _layer(
        self, replay: Replay, group: Group, layer: ModelLayer, frozen: KeptOutputs
    ) -> tuple[Tensor, Tensor]:
        """Return the losses with each head of a layer exchanged, total and direct, (H, B)."""
        name = f"{layer.tower}.L{layer.number}"
        most = max(1, self.tokens // (len(group) * group.long)) if replay.together else 1
        totals, directs = [], []
        for first in range(0, layer.heads, most):
            heads = tuple(range(first, min(first + most, layer.heads)))
            edit = Exchange((name,), None, None, self.pool, group.numbers, heads)
            totals.append(self._losses(replay, group, edit, layer, {}))
            if frozen.gave and self.freezing is not None:
                still = gives(frozen, len(heads), self.freezing.projections[layer])
                directs.append(self._losses(replay, group, edit, layer, still))
            else:
                directs.append(torch.full_like(totals[-1], torch.nan))
        return torch.cat(totals), torch.cat(directs)

    def _losses(
        self, replay: Replay, group: Group, edit: Exchange, layer: ModelLayer, still: Gives
    ) -> Tensor:
        """Return the loss of each input in each world of an edit, (W, B)."""
        worlds = len(edit.one_by_one)
        start = replay.starts[layer] if replay.restarts else 0
        with (
            replay.held(),
            editing(self.loaded, [edit], self.known),
            replay.restarted(worlds, start) as tensors,
            giving(still),
            only_counted(self.head, group.counted, worlds),
        ):
            logits = replay.call(**tensors).logits
        return losses(by_place(logits) if self.head is None else logits, group, worlds)


def by_place(logits: Tensor) -> Tensor:
    """Return logits with an axis of places, (B, N, words)."""
    return logits[:, None] if logits.dim() == 2 else logits
