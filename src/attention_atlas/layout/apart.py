"""How far are points from each other, for many heads at once?

On a GPU `torch.cdist` starts a block of threads for each pair, which is slow for the few numbers of
a place on a map. There, few dimensions are subtracted; for many, squares and products are taken in
float64, whose rounding is far below that of the float32 points.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

FEW = 4  # dimensions
CELLS = 1 << 26  # distances at once on a GPU; a CPU takes head by head, for its cache


def distances(left: Tensor, right: Tensor) -> Tensor:
    """Compute Euclidean distances of points (…, n, width) and (…, m, width); returns (…, n, m)."""
    if left.device.type == "cpu":
        return torch.cdist(left, right, compute_mode="donot_use_mm_for_euclid_dist")
    return subtracted(left, right) if left.shape[-1] <= FEW else multiplied(left, right)


def subtracted(left: Tensor, right: Tensor) -> Tensor:
    """Compute distances from differences, one dimension after another."""
    total = left.new_zeros(())
    for one, other in zip(left.unbind(-1), right.unbind(-1), strict=True):
        total = total + (one[..., :, None] - other[..., None, :]).square_()
    return total.sqrt_()


def multiplied(left: Tensor, right: Tensor) -> Tensor:
    """Compute distances from squares and products in float64; returns the type of the points."""
    one, other = left.double(), right.double()
    apart = one @ other.mT
    apart.mul_(-2).add_(one.square().sum(-1)[..., :, None])
    apart.add_(other.square().sum(-1)[..., None, :])
    return apart.clamp_min_(0).sqrt_().to(left.dtype)


def from_rows(points: Tensor, rows: Tensor) -> Tensor:
    """Compute distances of some points to all (heads, rows, points); to themselves they are ∞."""
    apart = distances(points[:, rows], points)
    own = rows[None, :, None].expand(len(points), -1, 1)
    return apart.scatter_(2, own, torch.inf)


def head_slices(points: Tensor, rows: int) -> Iterator[slice]:
    """Yield slices of the heads of points (heads, N, width) whose distances fit memory together."""
    heads, count = points.shape[:2]
    on_gpu = points.device.type != "cpu"
    together = max(1, CELLS // max(1, rows * count)) if on_gpu else 1
    for first in range(0, heads, together):
        yield slice(first, min(first + together, heads))
