"""What did one layer do with one input, without its padding?

A batch is cut into inputs, and an input into pieces, one per softmax: one for nearly all models,
several for windows and packed images. The steps of a generation are joined into one piece. N×N
masks exist only here, until they are compressed.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from attention_atlas.record.watch.call import Call
from attention_atlas.record.watch.layers import LayerCalls
from attention_atlas.record.watch.log_sum_exp import all_rows_seen, with_unseen_rows
from attention_atlas.store.form import CAUSAL, FULL, Form, compress

Term = npt.NDArray[np.float32] | npt.NDArray[np.bool_]
Places = slice | Tensor  # the places of a sequence that are not padding


def places(real: Tensor) -> Places:
    """Return the indexes of the real places of (N,) bool, as a slice if they are successive."""
    indexes = real.nonzero().flatten()
    if not len(indexes):
        return slice(0, 0)
    first, last = int(indexes[0]), int(indexes[-1])
    return slice(first, last + 1) if last - first + 1 == len(indexes) else indexes


class CannotSplit(Exception):  # noqa: N818 (a signal to run inputs one at a time, not an error)
    """The signal that the rows of a call cannot be split by input."""


@dataclass
class Piece:
    """One softmax of one input."""

    query: Tensor  # (H, n, D)
    key: Tensor  # (G, m, D)
    value: Tensor  # (G, m, E)
    form: Form
    weights: Tensor | None  # (H, n, m) the model's own
    output: Tensor | None  # (H, n, E)
    lse: Tensor | None = None  # (H, n)


@dataclass
class Forms:
    """A cache of what the inputs of a batch share.

    Forms are known by the tensors they came from, since most layers share one mask.
    """

    _known: dict[Hashable, tuple[Form, Call]] = field(default_factory=dict)
    _all_seen: dict[int, tuple[bool, Call]] = field(default_factory=dict)  # by the id of the call
    _last: tuple[Call, Hashable] | None = None  # a call, and what its forms are known by

    def of(self, call: Call, row: int, queries: Places, keys: Places) -> Form:
        """Return the form of input `row` of a call, without padding."""
        if self._last is None or self._last[0] is not call:
            n, m = call.query.shape[2], call.key.shape[2]
            self._last = call, (_memory(call.mask), _memory(call.bias), call.causal, n, m)
        key = (self._last[1], row)
        if key not in self._known:
            form = _form(call, row, queries, keys)
            self._known[key] = (form, call)  # keeps the tensors alive, so their addresses stay
        return self._known[key][0]

    def all_seen(self, call: Call) -> bool:
        """Tell whether every row of a call sees some key, by its log-sum-exp."""
        if id(call) not in self._all_seen:
            self.look_at([call])
        return self._all_seen[id(call)][0]

    def look_at(self, calls: Sequence[Call]) -> None:
        """Find out of several calls at once whether every row sees some key."""
        known = [call for call in calls if call.lse is not None]
        seen = all_rows_seen([call.lse for call in known if call.lse is not None])
        self._all_seen |= {id(call): (True, call) for call in calls}
        self._all_seen |= {
            id(call): (of_call, call) for call, of_call in zip(known, seen, strict=True)
        }


def _memory(tensor: Tensor | None) -> Hashable:
    return None if tensor is None else (tensor.data_ptr(), tensor.shape, tensor.stride())


def pieces(
    layer: LayerCalls,
    row: int,
    batch: int,
    queries: Places,
    keys: Places,
    forms: Forms,
) -> list[Piece]:
    """Return the pieces of input `row` of a batch."""
    if len(layer.steps) > 1:
        return [_joined(layer, forms)]
    calls = layer.steps[0]
    if len(calls) == 1 and calls[0].query.shape[0] == batch:
        return [_piece(calls[0], row, queries, keys, forms)]
    if batch > 1:
        raise CannotSplit
    everything = slice(None)
    return [
        _piece(call, part, everything, everything, forms)
        for call in calls
        for part in range(len(call.query))
    ]


def _piece(call: Call, row: int, queries: Places, keys: Places, forms: Forms) -> Piece:
    kv = min(row, call.key.shape[0] - 1)  # one set of keys may serve the whole batch
    return Piece(
        query=call.query[row, :, queries],
        key=call.key[kv, :, keys],
        value=call.value[kv, :, keys],
        form=forms.of(call, row, queries, keys),
        weights=None if call.weights is None else call.weights[row][:, queries][..., keys],
        output=None if call.output is None else call.output[row].transpose(0, 1)[:, queries],
        lse=_lse(call, row, queries, keys, forms),
    )


def _lse(call: Call, row: int, queries: Places, keys: Places, forms: Forms) -> Tensor | None:
    if call.lse is None:
        return None
    lse = call.lse[row, :, queries]
    return lse if forms.all_seen(call) else with_unseen_rows(lse, len(call.key[0, 0, keys]))


def _form(call: Call, row: int, queries: Places, keys: Places) -> Form:
    if call.mask is None and call.bias is None:
        return CAUSAL if call.causal else FULL
    return compress(_term(call, row)[:, _index(queries)][:, :, _index(keys)], call.rounding)


def _index(real: Places) -> slice | npt.NDArray[np.intp]:
    return real if isinstance(real, slice) else np.asarray(real.cpu().numpy())


def _term(call: Call, row: int) -> Term:
    """Return mask and bias of one batch row, (H or 1, N, M); a bool mask alone stays bool."""
    n, m = call.query.shape[2], call.key.shape[2]

    def of_row(x: Tensor) -> Tensor:
        x = x[min(row, len(x) - 1), ..., :m]
        return x.expand(x.shape[0], n, m)

    mask = None if call.mask is None else of_row(call.mask)
    bias = None if call.bias is None else of_row(call.bias).float()
    if mask is None:
        assert bias is not None
        if call.causal:
            future = torch.ones(n, m, dtype=torch.bool, device=bias.device).triu(1)
            bias = bias.masked_fill(future, -torch.inf)
        return np.asarray(bias.cpu().numpy())
    if mask.dtype == torch.bool:
        if bias is None:
            return np.asarray(mask.cpu().numpy())
        return np.asarray(bias.masked_fill(~mask, -torch.inf).cpu().numpy())
    total = mask.float() if bias is None else mask.float() + bias
    return np.asarray(total.cpu().numpy())


def _joined(layer: LayerCalls, forms: Forms) -> Piece:
    """Join the steps of a generation into one piece; each adds its queries and newest keys."""
    if any(len(calls) > 1 or len(calls[0].query) > 1 for calls in layer.steps):
        raise CannotSplit
    calls = [calls[0] for calls in layer.steps]
    first, cross = calls[0], layer.tower_key[1]
    new = [call if index == 0 or not cross else None for index, call in enumerate(calls)]
    keys = [c.key[0][:, 0 if c is first else -c.query.shape[2] :] for c in new if c is not None]
    values = [c.value[0][:, 0 if c is first else -c.query.shape[2] :] for c in new if c is not None]
    key, value = torch.cat(keys, 1), torch.cat(values, 1)
    weights = None
    if all(call.weights is not None for call in calls):
        weights = torch.from_numpy(_stacked(calls, _own, key.shape[1], cross, 0.0))
    return Piece(
        query=torch.cat([call.query[0] for call in calls], 1),
        key=key,
        value=value,
        form=compress(_stacked(calls, _additive, key.shape[1], cross, -np.inf)),
        weights=weights,
        output=None,
        lse=_joined_lse(calls, forms),
    )


def _joined_lse(calls: list[Call], forms: Forms) -> Tensor | None:
    everything = slice(None)
    rows = [_lse(call, 0, everything, everything, forms) for call in calls]
    known = [part for part in rows if part is not None]
    return torch.cat(known, 1) if len(known) == len(rows) else None


def _own(call: Call) -> npt.NDArray[np.float32]:
    assert call.weights is not None
    return np.asarray(call.weights[0].float().cpu().numpy())


def _additive(call: Call) -> npt.NDArray[np.float32]:
    n, m = call.query.shape[2], call.key.shape[2]
    if call.mask is None and call.bias is None:
        hidden = np.triu(np.ones((1, n, m), bool), 1) if call.causal else np.zeros((1, n, m), bool)
        return np.where(hidden, -np.inf, 0.0).astype(np.float32)
    term = _term(call, 0)
    if term.dtype == np.bool_:
        return np.where(term, 0.0, -np.inf).astype(np.float32)
    return np.asarray(term, dtype=np.float32)


def _stacked(
    calls: list[Call], rows_of: object, total: int, cross: bool, empty: float
) -> npt.NDArray[np.float32]:
    """Return the rows of all steps, (H or 1, Σ n, m); keys dropped from a cache are `empty`."""
    assert callable(rows_of)
    blocks, seen = [], 0
    for call in calls:
        rows = rows_of(call)
        seen += call.query.shape[2]
        stop = total if cross else seen
        block = np.full((rows.shape[0], rows.shape[1], total), empty, np.float32)
        block[:, :, stop - rows.shape[2] : stop] = rows
        blocks.append(block)
    heads = max(block.shape[0] for block in blocks)
    wide = [np.broadcast_to(block, (heads, *block.shape[1:])) for block in blocks]
    return np.concatenate(wide, 1)
