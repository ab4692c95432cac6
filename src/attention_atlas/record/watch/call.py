"""What is known about one call of attention, in whichever way it was recorded?

Axes: B batch, H heads, G key/value groups, N queries, M keys, D width.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
    samples: tuple["Sample", ...] = ()  # what some rows showed, before the rest was rounded

    @property
    def tower_key(self) -> tuple[str, bool]:
        return self.tower, self.cross

    def logits(self) -> Tensor:
        """Return the logits, float32 (B, H, N, M)."""
        return self.logits_of(grouped_product(self.query.float(), self.key.float().mT))

    def logits_of(self, products: Tensor) -> Tensor:
        """Return the logits (B, H, N, M) of some products of queries and keys."""
        logits = products * self.scale
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


@dataclass(frozen=True)
class Sample:
    """What some rows of a call say about the whole call; its tensors are on the model's device.

    S sequences of the call, R rows of each.
    """

    batch: int  # sequences and queries of the whole call
    queries: int
    sequences: Tensor  # (S,) their numbers in the batch of the call
    rows: Tensor  # (S, R) queries
    rounding: Tensor  # (S, R) the largest change of a weight by rounding vectors to fp16
    error: Tensor  # (S, R) the largest error of what the heads move
    size: Tensor  # (S, R) the largest number of what they move
    looked: Tensor  # (S, R, M) fp16: the largest weight of any head
    strongest: Tensor | None = None  # (S, R, H, K) the strongest weights, where asked for
    strongest_keys: Tensor | None = None  # (S, R, H, K) their keys


Light = Callable[[Sequence[Call]], list[Call]]  # what reduces calls to what is kept, in order


def spread(grouped: Tensor, heads: int) -> Tensor:
    """Repeat each group for its heads; return (B, H, M, D) from (B, G, M, D)."""
    times = heads // grouped.shape[1]
    return grouped if times == 1 else grouped.repeat_interleave(times, dim=1)


def grouped_product(left: Tensor, right: Tensor) -> Tensor:
    """Return (B, H, N, Y), the products of each head's (N, X) with its group's (X, Y)."""
    batch, heads, n, width = left.shape
    groups = right.shape[1]
    together = left.reshape(batch, groups, heads // groups * n, width) @ right
    return together.reshape(batch, heads, n, right.shape[-1])


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
