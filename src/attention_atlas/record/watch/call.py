"""What does one call of attention look like, whoever recorded it?

Axes: B batch, H heads, G key/value groups, N queries, M keys, D width.
"""

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor


@dataclass
class Call:
    """One softmax(q kᵀ) v as it happened, with everything needed to compute it again."""

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
    unknown: tuple[str, ...] = ()  # keyword arguments we do not know the meaning of
    rounding: float = 0.0  # how exactly `bias` is known: the tracer finds it by subtraction
    samples: tuple["Sample", ...] = ()  # what is left of the vectors as the model had them

    @property
    def tower_key(self) -> tuple[str, bool]:
        return self.tower, self.cross

    def sampled(self, inputs: slice, rows: Tensor) -> "Call":
        """The same call for some inputs and some of their queries, copied from the whole."""
        mask = self.mask
        if mask is None and self.causal:
            mask = (torch.arange(self.key.shape[2], device=rows.device) <= rows[:, None])[
                None, None
            ]
        query, keys = self.query[inputs][:, :, rows], self.key.shape[2]

        def some(x: Tensor) -> Tensor:  # one that all inputs share is laid beside each of them
            return x.expand(len(query), *x.shape[1:]) if len(x) == 1 else x[inputs]

        mask = None if self.mask is None else rows_of(some(self.mask), rows, keys)
        if mask is None and self.causal:
            past = torch.arange(keys, device=rows.device) <= rows[:, None]
            mask = past.expand(len(query), 1, *past.shape)
        return replace(
            self,
            query=query,
            key=some(self.key).clone(),
            value=some(self.value).clone(),
            mask=mask,
            bias=None if self.bias is None else rows_of(some(self.bias), rows, keys),
            causal=False,
            weights=None,
            output=None if self.output is None else some(self.output)[:, rows],
        )

    def logits(self, half: bool = False) -> Tensor:
        """(B, H, N, M) in float32; `half` rounds the vectors as an fp16 store would."""
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
        """(B, H, N, M): what logits come to, with the sink taking part."""
        if self.sink is None:
            return torch.softmax(logits, -1)
        sink = self.sink.float().reshape(1, -1, 1, 1).expand(*logits.shape[:-1], 1)
        return torch.softmax(torch.cat([logits, sink], -1), -1)[..., :-1]


@dataclass
class Sample:
    """A few rows of a call, to check what became of the rest."""

    call: Call
    inputs: slice
    rows: Tensor
    batch: int  # inputs and queries of the whole call
    queries: int


def spread(grouped: Tensor, heads: int) -> Tensor:
    """(B, G, M, D) → (B, H, M, D): each head beside the group it reads."""
    times = heads // grouped.shape[1]
    return grouped if times == 1 else grouped.repeat_interleave(times, dim=1)


def rows_of(term: Tensor, rows: Tensor, keys: int) -> Tensor:
    """Some rows of a mask or bias whose row axis may be shared and whose keys may be too many."""
    term = term[..., :keys]
    return term if term.shape[-2] == 1 else term[..., rows, :]


def same_memory(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and a.stride() == b.stride() and a.data_ptr() == b.data_ptr()


def first_tensor(output: Any) -> Tensor | None:
    """The tensor a module mainly gives back, from whatever it wraps it in."""
    if isinstance(output, Tensor):
        return output
    if hasattr(output, "values") and callable(output.values):
        output = tuple(output.values())
    if isinstance(output, tuple | list):
        return next((found for one in output if (found := first_tensor(one)) is not None), None)
    return None
