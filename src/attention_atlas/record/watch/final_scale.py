"""By how much does the final norm scale each token? Kept for every token, one number each.

    norm(x) = gain · (x − mean) · scale + shift      (without the mean in an RMS norm)

With the scale held, the norm is linear, so what a head adds to a logit can be told apart.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Any

import torch
from torch import Tensor, nn


@contextmanager
def final_scales(
    module: nn.Module, kind: str, gain: Tensor, shift: Tensor
) -> Iterator[list[Tensor]]:
    """Record the scale of each token (B, N) of each pass inside the block."""
    scales: list[Tensor] = []
    thread = get_ident()

    def hook(_module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        if get_ident() == thread and isinstance(output, Tensor) and args[0].dim() == 3:
            scales.append(scale_of(args[0].detach(), output.detach(), kind, gain, shift))

    handle = module.register_forward_hook(hook)
    try:
        yield scales
    finally:
        handle.remove()


def scale_of(given: Tensor, gave: Tensor, kind: str, gain: Tensor, shift: Tensor) -> Tensor:
    """Return the scale of each token (B, N), from what a norm was given and gave (B, N, width)."""
    x, y = given.float(), gave.float()
    if kind == "layer":
        x = x - x.mean(-1, keepdim=True)
    ours = x * gain.to(x.device)
    size = ours.square().sum(-1)
    along = ((y - shift.to(x.device)) * ours).sum(-1)
    return torch.where(size > 0, along / size.clamp_min(1e-30), torch.zeros_like(size))
