"""What does a head move instead of its own? The same as `aa.ablate` says, for all heads at once.

zero      nothing
mean      its mean over all tokens of the reference inputs
resample  what it moved at the same position of another input, drawn by seed and number of the input

The reference inputs are the first 64 of the corpus, as they are run; no input is its own partner.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from attention_atlas.edits.ablate import BY
from attention_atlas.edits.edit import Edit
from attention_atlas.edits.here import Here
from attention_atlas.edits.reference import Parts
from attention_atlas.names.errors import InputError
from attention_atlas.record.watch.door import Passing

Place = tuple[str, int, int]  # module, visit, part of a visit


def refuse_by(by: str, inputs: int) -> None:
    """Refuse an unknown way, or one that needs more inputs."""
    if by not in BY:
        raise InputError(f"an ablation by {by!r} was asked for; give one of {', '.join(BY)}")
    if by == "resample" and inputs < 2:
        raise InputError(
            "by resample takes what a head moved on other inputs and there is one input; give more "
            "inputs, or by zero"
        )


class Moved:
    """What the heads move in one pass, by place, (B, N, H, E)."""

    def __init__(self) -> None:
        self.by_place: dict[Place, Tensor] = {}
        self._parts = Parts()

    def place(self, passing: Passing) -> Place:
        """Return the place of a call."""
        return passing.site.module, passing.site.visit, self._parts.of(passing.site)

    def keep(self, passing: Passing) -> None:
        """Keep what the heads of a call move."""
        self.by_place[self.place(passing)] = passing.output.detach()


@dataclass
class Pool:
    """What heads moved on the reference inputs."""

    by: str
    seed: int
    numbers: list[int] = field(default_factory=list)  # of the inputs, as added
    moved: dict[Place, list[Tensor]] = field(default_factory=dict)  # each (N, H, E)
    _tables: dict[Place, Tensor] = field(default_factory=dict)

    def add(self, numbers: Sequence[int], moved: Moved) -> None:
        """Add inputs that ran in one batch."""
        self.numbers += numbers
        for place, output in moved.by_place.items():
            self.moved.setdefault(place, []).extend(output.unbind())

    def instead(self, place: Place, numbers: Sequence[int], like: Tensor) -> Tensor:
        """Return what heads move instead, for inputs of some numbers; broadcasts to (B, N, H, E).

        like  what they move, (B, N, H, E)
        """
        if self.by == "zero":
            return like.new_zeros(1, 1, 1, 1).expand(1, 1, *like.shape[2:])
        if self.by == "mean":
            return self._mean(place).to(like)
        lengths = tuple(len(output) for output in self._ordered(place))
        drawn = [self._drawn(number, like.shape[1], lengths) for number in numbers]
        which = torch.tensor(np.array(drawn), device=like.device)  # (B, 2, N)
        return self._table(place)[which[:, 0], which[:, 1]].to(like)

    @cached_property
    def _order(self) -> list[int]:
        return np.argsort(self.numbers, kind="stable").tolist()  # type: ignore[no-any-return]

    def _ordered(self, place: Place) -> list[Tensor]:
        """Return what was kept, in the order of the inputs."""
        return [self.moved[place][index] for index in self._order]

    def _table(self, place: Place) -> Tensor:
        """Return what was kept as one tensor (inputs, N, H, E), filled up with zeros."""
        if place not in self._tables:
            kept = self._ordered(place)
            self._tables[place] = torch.nn.utils.rnn.pad_sequence(kept, batch_first=True)
        return self._tables[place]

    def _mean(self, place: Place) -> Tensor:
        """Return the mean of what was kept over all tokens, float64 (1, 1, H, E)."""
        if place not in self._tables:
            mean = torch.cat(self._ordered(place)).double().mean(0)
            self._tables[place] = mean[None, None]
        return self._tables[place]

    def _drawn(self, number: int, count: int, lengths: tuple[int, ...]) -> list[list[int]]:
        """Return partner and position for each of an input's tokens, [[…], […]]."""
        numbers = [self.numbers[index] for index in self._order]
        drawn = np.random.default_rng([self.seed, number]).permutation(len(lengths)).tolist()
        others = [index for index in drawn if numbers[index] != number]
        longest = max(others, key=lambda index: lengths[index])
        partners, positions = [], []
        for position in range(count):
            partner = next((index for index in others if lengths[index] > position), None)
            partners.append(longest if partner is None else partner)
            positions.append(lengths[longest] - 1 if partner is None else position)
        return [partners, positions]


@dataclass(frozen=True, eq=False)
class Exchange(Edit):
    """Heads of one layer that move something else, one head in each world."""

    pool: Pool
    numbers: tuple[int, ...]  # of the inputs of a world
    one_by_one: tuple[int, ...]  # the head of each world

    kind: ClassVar[str] = "exchange"

    def output(self, passing: Passing, here: Here) -> None:
        """Exchange what the head of each world moves."""
        output = passing.output  # (W · B, N, H, E)
        size = len(output) // len(self.one_by_one)
        place = passing.site.module, passing.site.visit, here.part
        instead = self.pool.instead(place, self.numbers, output[:size])
        new = output.clone()
        for world, head in enumerate(self.one_by_one):
            new[world * size : (world + 1) * size, :, head] = instead[:, :, head]
        passing.output = new
