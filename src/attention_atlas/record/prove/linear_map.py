"""Which matrix and which bias does a linear module apply? Asked of the module itself.

Its parameter is taken where that reproduces what the module gives. Where it does not (quantised,
adapted, on another disk), unit vectors are run through it. A module that is not linear is neither.
"""

from typing import Any

import torch
from torch import Tensor, nn

PROBES = 4  # random rows on which a matrix must give what its module gives


def linear_map(module: nn.Module, width: int, bound: float) -> tuple[Tensor, Tensor] | None:
    """Return the matrix (width, out) and the bias (out,) of a module; None if it is not linear."""
    weight: Any = module.weight
    dtype = weight.dtype if weight.is_floating_point() and not weight.is_meta else torch.float32
    dice = torch.Generator().manual_seed(width)
    probes = torch.randn(PROBES, width, generator=dice).to(weight.device, dtype)
    with torch.no_grad():
        bias, gave = module(torch.zeros_like(probes[:1]))[0], module(probes)
        for matrix in _candidates(module, weight, width, bias):
            expected = probes.double() @ matrix.double() + bias.double()
            size = float(expected.abs().max())
            if float((gave.double() - expected).abs().max()) <= bound * max(size, 1e-30):
                return matrix.detach(), bias.detach()
    return None


def _candidates(module: nn.Module, weight: Tensor, width: int, bias: Tensor) -> Any:
    """Yield what may be the matrix: the parameter as it is, turned, and the module's own answer."""
    if weight.is_floating_point() and not weight.is_meta:
        if tuple(weight.shape) == (len(bias), width):
            yield weight.T
        if tuple(weight.shape) == (width, len(bias)):
            yield weight
    dtype = weight.dtype if weight.is_floating_point() else torch.float32
    units = torch.eye(width, device=bias.device, dtype=dtype)
    yield module(units) - bias


def norm_map(module: nn.Module, width: int, like: Tensor) -> tuple[str, Tensor, Tensor] | None:
    """Return kind ("layer" or "rms"), gain (width,) and shift (width,) of a norm; None: no norm.

    A norm of x and of −x differ by twice gain · z, and their mean is the shift; z has mean square 1
    with (layer) or without (rms) its mean taken away. Large x, so that epsilon does not matter.
    """
    dice = torch.Generator().manual_seed(width)
    x = (1000 * torch.randn(2, width, generator=dice)).to(like.device, like.dtype)
    x = x + 300  # so that the two kinds differ
    with torch.no_grad():
        try:
            plus, minus = module(x).double(), module(-x).double()
        except Exception:  # any error of a module that is no norm
            return None
    if plus.shape != x.shape:
        return None
    shift = (plus + minus).mean(0) / 2
    for kind in ("layer", "rms"):
        centred = x.double() - (x.double().mean(-1, keepdim=True) if kind == "layer" else 0)
        z = centred / centred.square().mean(-1, keepdim=True).sqrt()
        gain = ((plus - minus) / 2 * z).sum(0) / z.square().sum(0)
        error = (gain * z + shift - plus).abs().max()
        rounding = 1e-4 if like.dtype == torch.float32 or like.dtype == torch.float64 else 2e-2
        if float(error) <= rounding * float(plus.abs().max()):
            return kind, gain.float(), shift.float()
    return None
