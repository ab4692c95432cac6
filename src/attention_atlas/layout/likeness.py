"""Where on a map do points like this one stand?

Ties draw a point to some that are like it, but nothing tells it that those around it are not. So a
grid is laid over the places of a crowd (all queries, or all keys), and each node says what the
points around it are like: the mean of their vectors from `alike.py`, near ones counting most. A
point is then drawn towards those nodes near it that are most like it. From turn to turn the grid is
shifted, so that points do not gather on its lines. All sums are products of matrices, so a run
repeats on any device.
"""

from collections.abc import Callable

import torch
from torch import Tensor

SIDES = {2: 22, 3: 9}  # nodes of the grid along each axis
AROUND = 1.0  # steps of the grid: how far a node hears
REACH = 1.5  # steps of the grid: how far a point is drawn
STRICT = 30.0  # how much likeness counts against nearness
SHIFTS = (0.7548776662, 0.5698402910, 0.3819660113)  # of the grid along each axis, each turn
CELLS = 1 << 25  # points × nodes at once


def towards_like(axes: Tensor, vectors: Tensor, turn: int = 0) -> Tensor:
    """Get the way from places (dims, heads, points) to where like points stand; the same shape.

    vectors  (heads, points, width) with mean 0, whose distance says how alike two points are
    turn     how often this was done before; it says where the grid begins
    """
    side = SIDES[len(axes)]
    heads = max(1, CELLS // (axes.shape[2] * side ** len(axes)))
    parts = zip(torch.split(axes, heads, 1), torch.split(vectors, heads), strict=True)
    return torch.cat([_towards(places, of, side, turn) for places, of in parts], 1)


def _towards(axes: Tensor, vectors: Tensor, side: int, turn: int) -> Tensor:
    low, high = axes.amin(2, keepdim=True), axes.amax(2, keepdim=True)  # (dims, heads, 1)
    step = ((high - low) / (side - 2)).clamp_min(1e-12)  # nodes beyond the edge, or it draws in
    begin = axes.new_tensor([(0.5 + turn * by) % 1 for by in SHIFTS[: len(axes)]])
    node = low + step * (torch.arange(-1, side - 1, device=axes.device) + begin[:, None, None])
    # node is (dims, heads, side), square (dims, heads, points, side)
    square = ((axes[..., None] - node[:, :, None]) / step.mean(0)[..., None]).square_()
    heard = _outer([(way / (-2 * AROUND**2)).exp_() for way in square], torch.mul)
    means = heard.transpose(1, 2) @ vectors
    means /= heard.sum(1)[..., None].clamp_min(1e-3)  # (heads, nodes, width)
    own = vectors.square().sum(2, keepdim=True).clamp_min(1e-12)
    score = torch.baddbmm(
        means.square().sum(2)[:, None], vectors, means.transpose(1, 2), beta=-1, alpha=2
    ).mul_(STRICT / own)
    score += _outer([way / (-2 * REACH**2) for way in square], torch.add)
    chosen = score.softmax(2)
    at = torch.cat([_along(way, axis, side, len(axes)) for axis, way in enumerate(node)], 2)
    return (chosen @ at).permute(2, 0, 1) - axes


def _along(way: Tensor, axis: int, side: int, dims: int) -> Tensor:
    """Say where all nodes stand on one axis, from those along it (heads, side): (…, nodes, 1)."""
    shape = [len(way), *(side if other == axis else 1 for other in range(dims))]
    return way.view(shape).expand(-1, *[side] * dims).reshape(len(way), -1, 1)


def _outer(ways: list[Tensor], join: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """Join what each axis says of its nodes (heads, points, side): (heads, points, nodes)."""
    whole = ways[0]
    for way in ways[1:]:
        whole = join(whole[..., None], way[..., None, :]).flatten(2)
    return whole
