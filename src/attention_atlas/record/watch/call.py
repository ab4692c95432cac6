"""What is known about one call of attention, in whichever way it was recorded?

Axes: B batch, H heads, G key/value groups, N queries, M keys, D width.
"""

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor


@dataclass
class Call:
    """One softmax(q kᵀ) v of the model, with everything needed to compute it again."""

    module: str  # path of the attention module in the model
    tower: str  # path of the nearest enclosing model
    cross: bool
    place: tuple[str, int, int] | None  # (list of layers, index in it, its length)
    visit: int  # how often this module had been entered before
    step: int  # which forward pass: 0, then one for each generated token
    query: Tensor  # (B, H, N, D)
    key: Tensor  # (B, G, M, D)
    value: Tensor  # (B, G, M, E)
    scale: float
    mask: Tensor | None = None  # bool (True: seen) or additive, (B|1, H|1, N, M)
    causal: bool = False  # with no mask: the future is hidden
    bias: Tensor | None = None  # additive, (B|1, H|1, N, M)
    softcap: float | None = None
    sink: Tensor | None = None  # (H,)
    weights: Tensor | None = None  # (B, H, N, M) the model's own, where it gave them
    output: Tensor | None = None  # (B, N, H, E) before the output projection
    lse: Tensor | None = None  # (B, H, N) float32: log-sum-exp of what enters each softmax
    unknown: tuple[str, ...] = ()  # keyword arguments whose meaning we do not know
    rounding: float = 0.0  # how exactly `bias` is known: the tracer finds it by subtraction
    samples: tuple["Sample", ...] = ()  # rows as the model had them, when the rest is rounded

    @property
    def tower_key(self) -> tuple[str, bool]:
        return self.tower, self.cross

    def sampled(self, inputs: slice, rows: Tensor) -> "Call":
        """Return a copy of the call for some inputs and some of their queries."""
        mask = self.mask
        if mask is None and self.causal:
            mask = (torch.arange(self.key.shape[2], device=rows.device) <= rows[:, None])[
                None, None
            ]
        query, keys = self.query[inputs][:, :, rows], self.key.shape[2]

        def selected(x: Tensor) -> Tensor:  # a tensor that all inputs share is expanded
            return x.expand(len(query), *x.shape[1:]) if len(x) == 1 else x[inputs]

        mask = None if self.mask is None else rows_of(selected(self.mask), rows, keys)
        if mask is None and self.causal:
            past = torch.arange(keys, device=rows.device) <= rows[:, None]
            mask = past.expand(len(query), 1, *past.shape)
        return replace(
            self,
            query=query,
            key=selected(self.key).clone(),
            value=selected(self.value).clone(),
            mask=mask,
            bias=None if self.bias is None else rows_of(selected(self.bias), rows, keys),
            causal=False,
            weights=None,
            output=None if self.output is None else selected(self.output)[:, rows],
            lse=None if self.lse is None else selected(self.lse)[:, :, rows],
        )

    def logits(self, half: bool = False) -> Tensor:
        """Return the logits, float32 (B, H, N, M); `half` rounds the vectors to fp16 first."""
        query, key = self.query, self.key
        if half:
            query, key = query.half(), key.half()
        logits = query.float() @ spread(key, query.shape[1]).float().transpose(-1, -2) * self.scale
        if self.softcap is not None:
            logits = self.softcap * torch.tanh(logits / self.softcap)
        if self.bias is not None:
            logits = logits + self.bias.float()
        if self.mask is None:
            return logits
        if self.mask.dtype == torch.bool:
            return logits.masked_fill(~self.mask, torch.finfo(torch.float32).min)
        return logits + self.mask.float()

    def softmax(self, logits: Tensor) -> Tensor:
        """Return the weights of some logits (B, H, N, M); a sink takes part in the softmax."""
        if self.sink is None:
            return torch.softmax(logits, -1)
        sink = self.sink.float().reshape(1, -1, 1, 1).expand(*logits.shape[:-1], 1)
        return torch.softmax(torch.cat([logits, sink], -1), -1)[..., :-1]


@dataclass
class Sample:
    """A few rows of a call, for checking the whole call."""

    call: Call
    inputs: slice
    rows: Tensor
    batch: int  # inputs and queries of the whole call
    queries: int


def spread(grouped: Tensor, heads: int) -> Tensor:
    """Repeat each group for its heads; return (B, H, M, D) from (B, G, M, D)."""
    times = heads // grouped.shape[1]
    return grouped if times == 1 else grouped.repeat_interleave(times, dim=1)


def rows_of(term: Tensor, rows: Tensor, keys: int) -> Tensor:
    """Return some rows of a mask or bias, whose rows may be shared and whose keys too many."""
    term = term[..., :keys]
    return term if term.shape[-2] == 1 else term[..., rows, :]


def same_memory(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and a.stride() == b.stride() and a.data_ptr() == b.data_ptr()


def first_tensor(output: Any) -> Tensor | None:
    """Return the main tensor of a module's output, which may be nested, or None."""
    if isinstance(output, Tensor):
        return output
    if hasattr(output, "values") and callable(output.values):
        output = tuple(output.values())
    if isinstance(output, tuple | list):
        tensors = (first_tensor(item) for item in output)
        return next((tensor for tensor in tensors if tensor is not None), None)
    return None
