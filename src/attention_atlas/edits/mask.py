"""What if a token, or one line from a query to a key, could not be looked at?

The mask of attention hides it, so the weights that are left are those of the softmax over the other
keys. A row that loses every key has none to look at; `empty` says what then happens:

zero    the head moves nothing there (its weights are not changed, since no weights would be true)
keep    the row looks as it did before
refuse  an InputError
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from attention_atlas.edits.edit import ALL, Edit, Stage, head_names, numbers
from attention_atlas.edits.here import Here, grid
from attention_atlas.edits.seen import mask_of, seen_keys
from attention_atlas.names.arguments import several
from attention_atlas.names.errors import InputError
from attention_atlas.record.watch.door import Passing

EMPTY = ("zero", "keep", "refuse")


@dataclass(frozen=True)
class Mask(Edit):
    """Keys that are hidden from some heads."""

    tokens: tuple[int, ...] | None
    edges: tuple[tuple[int, int], ...] | None  # (query, key)
    empty: str

    kind: ClassVar[str] = "mask"

    @property
    def stage(self) -> Stage:
        """Tell that keys are hidden before the softmax."""
        return Stage.mask

    def before(self, passing: Passing, here: Here) -> None:
        """Hide the keys."""
        batch, _, queries, _ = passing.query.shape
        rows, hidden = here.rows(batch), self._hidden(passing, here, queries)
        if not rows or not bool(hidden.any()):
            return
        seen = seen_keys(passing)
        left = seen.clone()
        place = grid(rows, here.heads, device=hidden.device)
        left[place] &= ~hidden
        empty = seen.any(-1) & ~left.any(-1)  # (B, H, N)
        if self.empty == "refuse" and bool(empty.any()):
            raise InputError(
                f"this mask leaves a query of {here.layer.name(here.heads[0])} no key to look at; "
                'say what happens then: empty="zero" or empty="keep"'
            )
        passing.mask = mask_of(torch.where(empty[..., None], seen, left), passing)
        if self.empty == "zero":
            here.notes["empty"] = empty

    def output(self, passing: Passing, here: Here) -> None:
        """Let rows that lost every key move nothing."""
        empty = here.notes.get("empty")
        if empty is not None and bool(empty.any()):
            passing.output = passing.output.masked_fill(empty.transpose(1, 2)[..., None], 0)

    def _hidden(self, passing: Passing, here: Here, queries: int) -> Tensor:
        """Return which keys are hidden from which queries of the call, bool (N, M)."""
        keys, device = passing.key.shape[2], passing.query.device
        hidden = torch.zeros(queries, keys, dtype=torch.bool, device=device)
        chosen = here.queries(queries)
        if self.tokens is not None:
            columns = here.local(self.tokens, here.first_key, keys)
            hidden[grid(chosen, columns, device=device)] = True
        rows = set(chosen)
        for query, key in self.edges or ():
            row, column = query - here.first, key - here.first_key
            if row in rows and 0 <= column < keys:
                hidden[row, column] = True
        return hidden


def mask(
    heads: Any = ALL,
    token: Any = None,
    *,
    tokens: Any = None,
    edges: Any = None,
    empty: str = "zero",
    inputs: Any = None,
    positions: Any = None,
) -> Mask:
    """Hide tokens, or single lines from a query to a key; return the edit.

    token, tokens  one or several tokens that nobody looks at (from `positions`, where given)
    edges          pairs (query, key)
    empty          what a row that loses every key does: "zero", "keep" or "refuse"
    """
    if empty not in EMPTY:
        raise InputError(f"empty={empty!r} was asked for; give one of {', '.join(EMPTY)}")
    hidden = (*(numbers(token, "token") or ()), *(numbers(tokens, "token") or ()))
    lines = None if edges is None else tuple(_edge(edge) for edge in several(edges, "edges"))
    if token is None and tokens is None and edges is None:
        raise InputError("a mask of nothing was asked for; give tokens=[…] or edges=[(query, key)]")
    return Mask(
        head_names(heads), numbers(inputs, "input"), numbers(positions, "position"),
        None if token is None and tokens is None else hidden, lines, empty,
    )  # fmt: skip


def _edge(edge: Any) -> tuple[int, int]:
    both = numbers(edge, "token") or ()
    if len(both) != 2:
        raise InputError(f"{edge!r} is no line from a query to a key; give pairs (query, key)")
    return both[0], both[1]
