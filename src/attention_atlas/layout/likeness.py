"""Where on a map do points like this one stand?

Ties draw a point to some that are like it, but nothing tells it that those around it are not. So a
grid is laid over the places of a crowd (all queries, or all keys), and each node says what the
points around it are like: the mean of their vectors from `alike.py`, near ones counting most. A
point is then drawn towards those nodes near it that are most like it. From turn to turn the grid is
shifted, so that points do not gather on its lines. All sums are products of matrices, so a run
repeats on any device.
"""

import torch
from torch import Tensor

from attention_atlas.layout.device import has_triton

SIDES = {2: 20, 3: 9}  # nodes of the grid along each axis
AROUND = 0.7  # steps of the grid: how far a node hears
REACH = 1.0  # steps of the grid: how far a point is drawn
STRICT = 45.0  # how much likeness counts against nearness
SHIFTS = (0.7548776662, 0.5698402910, 0.3819660113)  # of the grid along each axis, each turn
SMALLEST = -80.0  # of exponents: a CPU takes a hundred times as long for numbers below about e^-87
CELLS, CELLS_CUDA = 1 << 25, 1 << 27  # points × nodes at once
WIDEST = 256  # vectors of the kernels, which keep a row in registers


def towards_like(axes: Tensor, vectors: Tensor, turn: int = 0) -> Tensor:
    """Get the way from places (dims, heads, points) to where like points stand; the same shape.

    vectors  (heads, points, width) with mean 0, whose distance says how alike two points are
    turn     how often this was done before; it says where the grid begins
    """
    side = SIDES[len(axes)]
    if axes.is_cuda and has_triton() and vectors.shape[2] <= WIDEST:
        return towards_fused(axes, vectors, side, turn)
    cells = CELLS_CUDA if axes.is_cuda else CELLS
    heads = max(1, cells // (axes.shape[2] * side ** len(axes)))
    parts = zip(torch.split(axes, heads, 1), torch.split(vectors, heads), strict=True)
    return torch.cat([_towards(places, of, side, turn) for places, of in parts], 1)


def towards_fused(
    axes: Tensor, vectors: Tensor, side: int, turn: int, precision: str = "tf32"
) -> Tensor:
    """Get the same by kernels that store nothing for a point and a node."""
    from attention_atlas.layout.fused_like import Crowd, like_means, like_ways

    node, unit = _grid(axes, side, turn)
    crowd = Crowd(axes.contiguous(), vectors.contiguous(), node.contiguous(), unit.contiguous())
    means, square = like_means(crowd, AROUND, precision)
    return like_ways(crowd, means, square, (STRICT, REACH), precision)


def _grid(axes: Tensor, side: int, turn: int) -> tuple[Tensor, Tensor]:
    """Say where nodes stand along each axis, (dims, heads, side), and how far apart: (heads, 1)."""
    low, high = axes.amin(2, keepdim=True), axes.amax(2, keepdim=True)  # (dims, heads, 1)
    step = ((high - low) / (side - 2)).clamp_min(1e-12)  # nodes beyond the edge, or it draws in
    numbers = torch.arange(-1, side - 1, dtype=axes.dtype, device=axes.device)
    begin = torch.stack([numbers + (0.5 + turn * by) % 1 for by in SHIFTS[: len(axes)]])
    return low + step * begin[:, None], step.mean(0)


def _towards(axes: Tensor, vectors: Tensor, side: int, turn: int) -> Tensor:
    node, unit = _grid(axes, side, turn)  # square is (dims, heads, points, side)
    square = ((axes[..., None] - node[:, :, None]) / unit[..., None]).square_()
    least = SMALLEST / len(axes)  # of the product of all axes
    heard = [way.div_(-2 * AROUND**2).clamp_min_(least).exp_() for way in square]
    means = _outer(heard).transpose(1, 2) @ vectors
    means /= _sums(heard).clamp_min(1e-3)  # (heads, nodes, width)
    at = torch.cat([_along(way, axis, side, len(axes)) for axis, way in enumerate(node)], 2)
    return _chosen(axes.permute(1, 2, 0), vectors, means, at, unit) - axes


def _chosen(places: Tensor, vectors: Tensor, means: Tensor, at: Tensor, unit: Tensor) -> Tensor:
    """Get the mean place of the nodes that are like each point, and near it: (dims, heads, points).

    A node counts by the softmax of likeness, −STRICT · |vector − mean|² / |vector|², and nearness,
    −distance² / (2 · REACH²). Both are sums of products of what a point and what a node has, but
    for what all nodes of a point share; so this is attention, and no score need be stored.

    places  (heads, points, dims); at (heads, nodes, dims) where the nodes stand
    """
    strict = STRICT / vectors.square().sum(2, keepdim=True).clamp_min(1e-12)
    middle = at.mean(1, keepdim=True)
    here, there = ((of - middle) / unit[..., None] for of in (places, at))
    asked = [2 * strict * vectors, -strict, here / REACH**2, torch.full_like(strict, -0.5)]
    offered = [means, means.square().sum(2, keepdim=True), there,
               there.square().sum(2, keepdim=True) / REACH**2]  # fmt: skip
    attend = attend_fused if places.is_cuda else attend_plain
    chosen = attend(torch.cat(asked, 2), torch.cat(offered, 2), at - middle)
    return (chosen + middle).permute(2, 0, 1)


def attend_plain(asked: Tensor, offered: Tensor, values: Tensor) -> Tensor:
    """Get the mean value of what is offered (heads, nodes, width), by softmax of its product."""
    score = asked @ offered.transpose(1, 2)
    score -= score.amax(2, keepdim=True)
    score.clamp_min_(SMALLEST).exp_()
    return (score @ values) / score.sum(2, keepdim=True)


def attend_fused(asked: Tensor, offered: Tensor, values: Tensor) -> Tensor:
    """Get the same by one kernel that stores no product; it takes widths that are whole eights."""
    query, key, value = (
        torch.nn.functional.pad(of, (0, -of.shape[2] % 8))[:, None]
        for of in (asked, offered, values)
    )
    means = torch.nn.functional.scaled_dot_product_attention(query, key, value, scale=1.0)
    return means[:, 0, :, : values.shape[2]]


def _along(way: Tensor, axis: int, side: int, dims: int) -> Tensor:
    """Say where all nodes stand on one axis, from those along it (heads, side): (…, nodes, 1)."""
    shape = [len(way), *(side if other == axis else 1 for other in range(dims))]
    return way.view(shape).expand(-1, *[side] * dims).reshape(len(way), -1, 1)


def _outer(ways: list[Tensor]) -> Tensor:
    """Multiply what each axis says of its nodes (heads, points, side): (heads, points, nodes)."""
    whole = ways[0]
    for way in ways[1:]:
        whole = (whole[..., None] * way[..., None, :]).flatten(2)
    return whole


def _sums(ways: list[Tensor]) -> Tensor:
    """Sum the same over all points: (heads, nodes, 1)."""
    return (_outer(ways[:-1]).transpose(1, 2) @ ways[-1]).flatten(1)[..., None]
