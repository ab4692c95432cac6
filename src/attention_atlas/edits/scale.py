"""What if a head moved more, or less? Its output is multiplied by a number."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from attention_atlas.edits.edit import Edit, head_names, numbers
from attention_atlas.edits.here import Here, grid
from attention_atlas.names.errors import InputError
from attention_atlas.record.watch.door import Passing


@dataclass(frozen=True)
class Scale(Edit):
    """Heads whose output is multiplied."""

    by: float

    kind: ClassVar[str] = "scale"

    def output(self, passing: Passing, here: Here) -> None:
        """Multiply what the heads move."""
        output = passing.output  # (B, N, H, E)
        rows, queries = here.rows(len(output)), here.queries(output.shape[1])
        if not rows or not queries:
            return
        place = grid(rows, queries, here.heads, device=output.device)
        new = output.clone()
        new[place] = output[place] * self.by
        passing.output = new


def scale(heads: Any, by: float, *, inputs: Any = None, positions: Any = None) -> Scale:
    """Multiply what heads move by a number; return the edit."""
    if not math.isfinite(by):
        raise InputError(f"a scale of {by} was asked for; give a finite number")
    where = numbers(inputs, "input"), numbers(positions, "position")
    return Scale(head_names(heads), *where, float(by))
