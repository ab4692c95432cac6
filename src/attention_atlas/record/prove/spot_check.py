"""Does what we recompute still agree with the model, in each batch of the capture?

The receipt is made on a few inputs; other batches have other masks and padding. So in every batch a
few rows of every layer are recomputed, of its first and its last input (the most and the least
padded, since a batch is sorted by length), and their output is compared with the output of the
model's own attention. The same rows show whether fp16 is fine enough for the stored vectors.

The rows are copied while the model runs, and the rest is rounded at once, so that one layer's
memory is free for the next. The rows of all layers are checked together afterwards.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import torch
from torch import Tensor

from attention_atlas.record.watch.call import Call, Sample, same_memory, spread

ROWS = 8


@dataclass
class Lighten:
    """A function that reduces a call to sampled rows and vectors in fp16, where that is enough."""

    fine: set[str] = field(default_factory=set)  # modules whose vectors stay as they are
    everything: bool = False  # round nothing
    _last: tuple[Call, Call] | None = None

    def __call__(self, call: Call) -> Call:
        light = replace(call, samples=samples_of(call), output=None)
        if light.samples and not (self.everything or call.module in self.fine):
            light = self._in_half(light)
        return light

    def _in_half(self, call: Call) -> Call:
        """Return a call in fp16, but with float32 values if one is beyond the range of fp16."""
        low, high = torch.aminmax(call.value) if call.value.numel() else (0.0, 0.0)
        fits = max(-float(low), float(high)) < torch.finfo(torch.float16).max
        query, key = self._ends(call)
        value = call.value.half() if fits else call.value.float()
        light = replace(call, query=query, key=key, value=value)
        self._last = (call, light)
        return light

    def _ends(self, call: Call) -> tuple[Tensor, Tensor]:
        """Return queries and keys in fp16; successive calls that share them still do after."""
        if self._last is not None:
            before, light = self._last
            if all(same_memory(getattr(before, x), getattr(call, x)) for x in ("query", "key")):
                return light.query, light.key
        return call.query.half(), call.key.half()


def samples_of(call: Call) -> tuple[Sample, ...]:
    """Return a sample of a call; none if it has no vectors."""
    if not call.query.shape[-1] or not call.query.numel():
        return ()
    batch, n = len(call.query), call.query.shape[2]
    inputs = slice(0, None, max(1, batch - 1))
    rows = _rows(n, call.query.device)
    return (Sample(call.sampled(inputs, rows), inputs, rows, batch, n),)


@cache
def _rows(n: int, device: torch.device) -> Tensor:
    return torch.linspace(0, n - 1, min(ROWS, n), device=device).round().long()


@dataclass(frozen=True)
class Errors:
    """The largest errors of sampled rows: of weights by fp16 rounding, and of output (relative).

    Weight on padding counts as an error of the output, since an atlas has no column for it.
    """

    rounding: float
    output: float


def spot_check(samples: list[Sample], queries: Tensor | None, keys: Tensor | None) -> list[Errors]:
    """Return the errors of each sample; samples of one shape are checked together.

    queries, keys  (B, N) and (B, M) bool: which places are not padding; None: all
    """
    alike: dict[Hashable, list[int]] = {}
    for index, sample in enumerate(samples):
        alike.setdefault(_shape(sample, index), []).append(index)
    by_index: dict[int, Errors] = {}
    for group in alike.values():
        first = samples[group[0]]
        together = _joined([samples[index].call for index in group])
        counts, pads = _counted(first, queries, keys)
        errors = _errors(together, len(group), counts, pads)
        by_index |= dict(zip(group, errors, strict=True))
    return [by_index[index] for index in range(len(samples))]


def _shape(sample: Sample, index: int) -> Hashable:
    """Return a key that is equal for samples that can be joined along the batch."""
    call = sample.call
    terms = (call.key, call.value, call.mask, call.bias, call.output)
    if call.sink is not None:
        return index
    shapes = tuple(None if x is None else (x.shape, x.dtype) for x in (call.query, *terms))
    return shapes, call.query.device, sample.queries, sample.batch, call.scale, call.softcap


def _joined(calls: list[Call]) -> Call:
    if len(calls) == 1:
        return calls[0]

    joined: dict[str, Any] = {
        name: torch.cat([getattr(call, name) for call in calls])
        for name in ("query", "key", "value", "mask", "bias", "output")
        if getattr(calls[0], name) is not None
    }
    return replace(calls[0], **joined)


def _counted(
    sample: Sample, queries: Tensor | None, keys: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """Return which sampled rows are real (B, rows), and which keys are padding (B, 1, 1, M)."""
    size, rows = len(sample.call.query), sample.rows
    if queries is None or queries.shape != (sample.batch, sample.queries):
        counts = torch.ones(size, len(rows), dtype=torch.bool, device=rows.device)
    else:
        counts = queries[sample.inputs].to(rows.device)[:, rows]
    if keys is None or keys.shape != (sample.batch, sample.call.key.shape[2]):
        return counts, None
    return counts, ~keys[sample.inputs].to(rows.device)[:, None, None, :]


def _errors(call: Call, parts: int, counts: Tensor, pads: Tensor | None) -> list[Errors]:
    """Return the errors of each sample of a call that joins `parts` samples along its batch."""
    weights = call.softmax(call.logits())  # (parts · B, H, rows, M)
    rounded = call.softmax(call.logits(half=True))
    rounding = _largest((weights - rounded).abs().amax((1, 3)), counts, parts)
    output = torch.zeros_like(rounding)
    if pads is not None:
        lost = (weights.view(parts, -1, *weights.shape[1:]) * pads).sum(-1).amax(2).flatten(0, 1)
        output = torch.maximum(output, _largest(lost, counts, parts))
    if call.output is not None:
        moved = weights @ spread(call.value, weights.shape[1]).float()  # (parts · B, H, rows, E)
        given = call.output.transpose(1, 2).float()
        size = given.nan_to_num(0.0).abs().amax((1, 2, 3)).clamp_min(1e-6)[:, None]
        off = (moved - given).abs().amax((1, 3)) / size
        output = torch.maximum(output, _largest(off, counts, parts))
    return [Errors(*pair) for pair in torch.stack([rounding, output], 1).tolist()]


def _largest(by_row: Tensor, counts: Tensor, parts: int) -> Tensor:
    """Return the largest error of each sample, (parts,); NaN counts as infinite."""
    by_part = by_row.nan_to_num(torch.inf).view(parts, -1, by_row.shape[1])  # (parts, B, rows)
    return by_part.masked_fill(~counts, 0.0).amax((1, 2))
