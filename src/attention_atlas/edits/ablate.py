"""What does the model do without a head? What the head moves is taken away or exchanged.

zero      the head moves nothing
mean      it moves, everywhere, its mean over all tokens of the reference inputs
resample  it moves what it moved at the same position of another input, drawn by seed. If that input
          is too short, the next drawn is taken; beyond the longest, its last token
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from attention_atlas.edits.edit import Edit, head_names, numbers
from attention_atlas.edits.here import Here, grid
from attention_atlas.edits.inputs import Given, freeze_all
from attention_atlas.edits.reference import Reference
from attention_atlas.names.errors import InputError
from attention_atlas.record.watch.door import Passing

BY = ("zero", "mean", "resample")


@dataclass(frozen=True)
class Ablate(Edit):
    """Heads whose output is taken away or exchanged."""

    by: str
    from_: tuple[Given, ...] | None
    seed: int | None

    kind: ClassVar[str] = "ablate"
    sides: ClassVar[frozenset[str]] = frozenset({"output"})

    @property
    def references(self) -> tuple[Given, ...] | None:
        """Return the inputs that mean and resample read; zero needs none."""
        return None if self.by == "zero" else self.from_ or ()

    def output(self, passing: Passing, here: Here) -> None:
        """Exchange what the heads move."""
        output = passing.output  # (B, N, H, E)
        rows, queries = here.rows(len(output)), here.queries(output.shape[1])
        if not rows or not queries:
            return
        place = grid(rows, queries, here.heads, device=output.device)
        new = output.clone()
        new[place] = self._value(here, rows, queries, output)
        passing.output = new

    def _value(self, here: Here, rows: list[int], queries: list[int], output: Tensor) -> Tensor:
        if self.by == "zero":
            return output.new_zeros(())
        reference: Reference = here.reference
        moved = reference.read(
            here.layer, here.part, "output"
        )  # one (n, h, E) for each reference input
        if self.by == "mean":
            return torch.cat(moved).double().mean(0).to(output)
        taken = [self._resampled(here, row, queries, moved) for row in rows]
        return torch.stack(taken).to(output)

    def _resampled(self, here: Here, row: int, queries: list[int], moved: list[Tensor]) -> Tensor:
        number = here.batch.number(row)
        itself = here.batch.own.get(number)
        drawn = np.random.default_rng([self.seed or 0, number]).permutation(len(moved))
        inputs = here.reference.inputs
        others = [moved[index] for index in drawn if inputs[index] != itself] or moved
        longest = max(others, key=len)
        positions = [here.first + query for query in queries]
        return torch.stack(
            [next((other[p] for other in others if len(other) > p), longest[-1]) for p in positions]
        )


def ablate(
    heads: Any,
    by: str = "zero",
    *,
    from_: Any = None,
    seed: int | None = None,
    inputs: Any = None,
    positions: Any = None,
) -> Ablate:
    """Take away what heads move; return the edit.

    by     "zero", "mean" or "resample"
    from_  the reference inputs of mean and resample; unset: the inputs at hand
    seed   of resample
    """
    if by not in BY:
        raise InputError(f"an ablation by {by!r} was asked for; give one of {', '.join(BY)}")
    given = freeze_all(from_)
    if by == "zero" and given:
        raise InputError('an ablation by "zero" reads no inputs; leave out from_, or say by="mean"')
    if seed is not None and by != "resample":
        raise InputError(f"an ablation by {by!r} draws nothing; leave out the seed")
    return Ablate(
        head_names(heads), numbers(inputs, "input"), numbers(positions, "position"),
        by, given or None, (seed or 0) if by == "resample" else None,
    )  # fmt: skip
