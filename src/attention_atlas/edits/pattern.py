"""What if a head looked in a way that we choose? Its weights are set after the softmax.

even      equal weights on all keys that the model lets it see
previous  the token before; the first token, and one whose previous token is hidden, on itself
self      the token itself
window    equal weights on the first `sink` tokens and the `recent` last ones, itself among them
a matrix  rows of weights, each with the sum one, for an input of that many tokens
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from attention_atlas.edits.anatomy import ModelLayer
from attention_atlas.edits.edit import Edit, Stage, head_names, numbers
from attention_atlas.edits.here import Here, grid
from attention_atlas.edits.seen import seen_keys
from attention_atlas.names.arguments import shown
from attention_atlas.names.errors import InputError
from attention_atlas.record.watch.door import Passing

NAMED = ("even", "previous", "self", "window")
Matrix = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Pattern(Edit):
    """Heads whose weights are set."""

    pattern: str | Matrix
    sink: int | None
    recent: int | None

    kind: ClassVar[str] = "pattern"

    @property
    def stage(self) -> Stage:
        """Tell that weights are set after the softmax."""
        return Stage.weights

    @property
    def alone(self) -> bool:  # type: ignore[override]
        """Tell whether inputs must run unpadded: a matrix fits one length."""
        return not isinstance(self.pattern, str)

    def check(self, heads: dict[ModelLayer, tuple[int, ...]]) -> None:
        """Refuse patterns along one text where queries and keys are of two."""
        cross = next((layer for layer in heads if layer.cross), None)
        if cross is not None and self.pattern in NAMED and self.pattern != "even":
            raise InputError(
                f"{cross.name(heads[cross][0])} looks at another sequence, so it has no pattern "
                f'{self.pattern!r}; give "even" or a matrix'
            )

    def weights(self, passing: Passing, here: Here) -> None:
        """Set the weights of the chosen rows."""
        own = passing.weights
        assert own is not None
        rows, queries = here.rows(len(own)), here.queries(own.shape[2])
        if rows and not isinstance(self.pattern, str):
            self._refuse_other_size(own, here)
            queries = [query for query in queries if here.first + query < len(self.pattern)]
        if not rows or not queries:
            return
        place = grid(rows, here.heads, queries, device=own.device)
        seen = seen_keys(passing)[place]  # (rows, h, n, M)
        target = self._target(seen, here, queries).to(own.dtype)
        new = own.clone()
        new[place] = torch.where(target.sum(-1, keepdim=True) > 0, target, own[place])
        passing.weights = new

    def _target(self, seen: Tensor, here: Here, queries: list[int]) -> Tensor:
        """Return the weights (rows, h, n, M); a row that cannot be set is zero."""
        place = torch.tensor(queries, device=seen.device)[:, None] + here.first
        key = torch.arange(seen.shape[-1], device=seen.device)[None] + here.first_key
        if isinstance(self.pattern, str):
            return _NAMED[self.pattern](self, seen, place, key)
        target = torch.zeros(seen.shape, device=seen.device, dtype=torch.float64)
        width = min(len(self.pattern[0]), seen.shape[-1])
        rows = [self.pattern[here.first + query][:width] for query in queries]
        target[..., :width] = torch.tensor(rows, dtype=target.dtype, device=target.device)
        lost = ((target > 0) & ~seen).nonzero()
        if len(lost):
            _, _, query, hidden = lost[0].tolist()
            raise InputError(
                f"row {here.first + queries[query]} of the pattern looks at token {hidden}, which "
                "the model or a mask hides from it; give weights on the tokens that it sees"
            )
        return target

    def _refuse_other_size(self, own: Tensor, here: Here) -> None:
        size = len(self.pattern), len(self.pattern[0])
        if here.first == 0 and size != (own.shape[2], here.length):
            raise InputError(
                f"the pattern is {size[0]} × {size[1]} and the input has {own.shape[2]} queries "
                f"and {here.length} keys in {here.layer.tower}; give one row for each query"
            )


def _even(_edit: Pattern, seen: Tensor, _place: Tensor, _key: Tensor) -> Tensor:
    return _shared_out(seen)


def _itself(_edit: Pattern, seen: Tensor, place: Tensor, key: Tensor) -> Tensor:
    return _shared_out(seen & (key == place))


def _previous(edit: Pattern, seen: Tensor, place: Tensor, key: Tensor) -> Tensor:
    before = seen & (key == place - 1)
    return _shared_out(torch.where(before.any(-1, keepdim=True), before, seen & (key == place)))


def _window(edit: Pattern, seen: Tensor, place: Tensor, key: Tensor) -> Tensor:
    sink, recent = edit.sink or 0, edit.recent or 0
    near = (key > place - recent) & (key <= place)
    return _shared_out(seen & ((key < sink) | near))


def _shared_out(chosen: Tensor) -> Tensor:
    count = chosen.sum(-1, keepdim=True, dtype=torch.float64)
    return chosen.double() / count.clamp_min(1)


_NAMED = {"even": _even, "previous": _previous, "self": _itself, "window": _window}


def pattern(
    heads: Any,
    pattern: Any,
    *,
    sink: int | None = None,
    recent: int | None = None,
    inputs: Any = None,
    positions: Any = None,
) -> Pattern:
    """Set where heads look; return the edit.

    pattern       "even", "previous", "self", "window", or rows of weights that each sum to one
    sink, recent  of a window: so many first tokens (1) and last tokens (4)
    """
    if isinstance(pattern, str) and pattern not in NAMED:
        raise InputError(
            f"no pattern is called {pattern!r}; give {', '.join(NAMED)} or rows of weights"
        )
    window = isinstance(pattern, str) and pattern == "window"  # an array has no one answer
    if (sink is not None or recent is not None) and not window:
        raise InputError('sink and recent belong to the pattern "window"; leave them out')
    if window:
        sink, recent = (1 if sink is None else sink), (4 if recent is None else recent)
        if sink < 0 or recent < 1:
            raise InputError(f"a window of {sink} and {recent} tokens is empty; give recent=1")
    rows = pattern if isinstance(pattern, str) else _rows(pattern)
    where = numbers(inputs, "input"), numbers(positions, "position")
    return Pattern(head_names(heads), *where, rows, sink, recent)


def _rows(given: Any) -> Matrix:
    try:
        array = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"the pattern is {shown(given)}; give rows of weights") from None
    if array.ndim != 2 or not array.size:
        raise InputError(f"a pattern of shape {array.shape} was given; give rows of weights")
    # Weights in float32 sum to one within the rounding of a softmax over so many keys.
    off = np.abs(array.sum(1) - 1)
    bound = 4 * (array.shape[1] + 8) * 2.0**-24
    row = int(np.nan_to_num(off, nan=np.inf).argmax())
    if not off[row] <= bound or (array < 0).any():
        row = row if not off[row] <= bound else int((array < 0).any(1).argmax())
        raise InputError(
            f"row {row} of the pattern sums to {array[row].sum():.6g}; the weights of a row are "
            "not negative and sum to one"
        )
    return tuple(tuple(float(weight) for weight in row) for row in array)
