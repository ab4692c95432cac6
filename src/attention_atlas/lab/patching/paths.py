"""How much of a head's effect goes through another head?

A path leads from a sending head straight to the query, key or value of a receiving head. Three
worlds are rows of one batch, which runs once:

    plain     the base input
    sender    the sending head does what it did on the other input; every other head, and every
              feed-forward layer, gives what it gives in the plain world
    receiver  the plain world, but the receiving head gets its query, key or value from the sender

So what the receiving head reads has changed by what the sending head adds to the stream and nothing
else, and the answer in the receiver's world has changed by what the receiving head makes of it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from attention_atlas.edits.edit import ALL, Edit, Stage
from attention_atlas.edits.here import Here, grid
from attention_atlas.edits.patch import patch
from attention_atlas.lab.patching.heads import Effect, Transplant
from attention_atlas.lab.patching.plan import Plan, Unit, short_name, units
from attention_atlas.lab.patching.writes import feed_forward_modules, held
from attention_atlas.names.errors import ModelError
from attention_atlas.record.watch.door import Passing

VECTORS = ("query", "key", "value")


@dataclass(frozen=True)
class Take(Edit):
    """Heads that take a side over from other rows of the batch, in the same pass."""

    side: str
    sources: tuple[int, ...]  # for each row that it changes, the row that it takes from

    kind: ClassVar[str] = "take"

    @property
    def stage(self) -> Stage:
        """Tell the stage of the side."""
        return Stage.output if self.side == "output" else Stage.vectors

    def before(self, passing: Passing, here: Here) -> None:
        """Take over query, key or value."""
        groups = here.layer.groups_of(here.heads)
        if self.side == "query":
            passing.query = self._taken(passing.query, here, here.heads, 1)
        elif self.side == "key":
            passing.key = self._taken(passing.key, here, groups, 1)
        elif self.side == "value":
            passing.value = self._taken(passing.value, here, groups, 1)

    def output(self, passing: Passing, here: Here) -> None:
        """Take over what the heads move."""
        if self.side == "output":
            passing.output = self._taken(passing.output, here, here.heads, 2)

    def _taken(self, tensor: Tensor, here: Here, heads: Sequence[int], axis: int) -> Tensor:
        rows = here.rows(len(tensor))
        if not rows:
            return tensor
        moved = tensor.movedim(axis, 1)  # (B, h, …)
        new = moved.clone()
        place = grid(rows, heads, device=tensor.device)
        new[place] = moved[grid(self.sources, heads, device=tensor.device)]
        return new.movedim(1, axis)


def path_effects(case: Transplant, plan: Plan) -> Iterator[Effect]:
    """Yield the metric of each path from a head of the plan to a receiving head."""
    scene = case.base
    size = (scene.batch_size - 1) // 2
    if size < 1:
        raise ModelError(
            f"paths need several worlds in one batch, and {scene.loaded.name} runs this input alone"
        )
    others = feed_forward_modules(scene)
    sides = VECTORS if plan.what == "output" else (plan.what,)
    shared = "key" if {"key", "value"} & set(sides) else "query"
    for receiver in units(plan.through, scene.known, shared):
        through = "+".join(short_name(scene.known, receiver.layer, head) for head in receiver.heads)
        senders = [
            unit
            for unit in units(plan.heads, scene.known, "output")
            if _comes_before(unit, receiver)
        ]
        for first in range(0, len(senders), size):
            chosen = senders[first : first + size]
            edits = _edits(case, chosen, receiver, sides)
            with held(others, range(1, 1 + len(chosen))):
                logits = scene.run(edits, 2 * len(chosen) + 1)[1 + len(chosen) :]
            for sender, value in zip(chosen, case.question.read(logits), strict=True):
                name = short_name(scene.known, sender.layer, sender.heads[0])
                yield Effect(name, value, through)


def _comes_before(sender: Unit, receiver: Unit) -> bool:
    here, there = sender.layer, receiver.layer
    return here.tower != there.tower or here.number < there.number


def _edits(
    case: Transplant, senders: Sequence[Unit], receiver: Unit, sides: Sequence[str]
) -> list[tuple[range, Edit]]:
    """Return edits with their rows: 0 is plain, then the senders, then the receivers."""
    count = len(senders)
    sending, receiving = range(1, 1 + count), range(1 + count, 1 + 2 * count)
    edits: list[tuple[range, Edit]] = [
        (sending, Take((ALL,), None, None, "output", (0,) * count)),
        *(
            (range(row, row + 1), patch(sender.names(), from_=case.source, align=case.align))
            for row, sender in zip(sending, senders, strict=True)
        ),
    ]
    names = tuple(receiver.names())
    edits += [(receiving, Take(names, None, None, side, tuple(sending))) for side in sides]
    return edits
