# ruff: noqa: N803  (Triton writes pointers and constants in capitals)
# mypy: disable-error-code="no-untyped-def,untyped-decorator"
"""How do all points find where their like stand in two CUDA kernels?

The sums of `likeness.py`. The first kernel computes what the points around each node are like, the
second which nodes each point is drawn to; neither stores a number for a point and a node. Products
of vectors are taken by tensor cores, which keep ten bits of each factor (TF32); how far a point is
from a node, and all sums, are float32. Imported only where the tensors are on CUDA.
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

NODES = 64  # of a program, or of a piece that a program goes through
POINTS = 64


class Crowd(NamedTuple):
    """The points of one crowd of every head and the grid over them, without gaps in memory."""

    axes: Tensor  # (dims, heads, points) places
    vectors: Tensor  # (heads, points, width)
    node: Tensor  # (dims, heads, side) where nodes stand along each axis
    unit: Tensor  # (heads, 1) the step of the grid


def like_means(crowd: Crowd, around: float, precision: str) -> tuple[Tensor, Tensor]:
    """Get the mean vector of the points around each node: (heads, nodes, width), and its square.

    around     how far a node hears, in steps of the grid
    precision  of products: "tf32", or "ieee" for float32
    """
    dims, heads, points = crowd.axes.shape
    side, width = crowd.node.shape[2], crowd.vectors.shape[2]
    nodes = side**dims
    means = crowd.vectors.new_empty(heads, nodes, width)
    square = crowd.vectors.new_empty(heads, nodes)
    _hear[(triton.cdiv(nodes, NODES), heads)](
        *crowd, means, square, heads, points, nodes, width, -0.5 / around**2,
        SIDE=side, DIMS=dims, WIDE=_wide(width), NODES=NODES, POINTS=POINTS, PRECISION=precision,
        num_warps=4,
    )  # fmt: skip
    return means, square


def like_ways(
    crowd: Crowd, means: Tensor, square: Tensor, taste: tuple[float, float], precision: str
) -> Tensor:
    """Get the way from each point to the nodes that are like it: (dims, heads, points).

    means, square  as `like_means` returns them
    taste          how much likeness counts, and how far a point is drawn, in steps of the grid
    """
    dims, heads, points = crowd.axes.shape
    side, width = crowd.node.shape[2], crowd.vectors.shape[2]
    strict, reach = taste
    ways = torch.empty_like(crowd.axes)
    _choose[(triton.cdiv(points, POINTS), heads)](
        *crowd, means, square, ways, heads, points, side**dims, width, strict, -0.5 / reach**2,
        SIDE=side, DIMS=dims, WIDE=_wide(width), NODES=NODES, POINTS=POINTS, PRECISION=precision,
        num_warps=4,
    )  # fmt: skip
    return ways


def _wide(width: int) -> int:
    return max(16, int(triton.next_power_of_2(width)))


@triton.jit(do_not_specialize=["heads", "points", "nodes"])
def _hear(
    AXES, VECTORS, NODE, UNIT, MEANS, SQUARE, heads, points, nodes, width, fall,
    SIDE: tl.constexpr, DIMS: tl.constexpr, WIDE: tl.constexpr, NODES: tl.constexpr,
    POINTS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(1).to(tl.int64)
    n = tl.program_id(0) * NODES + tl.arange(0, NODES)
    real = n < nodes
    column = tl.arange(0, WIDE)
    inside = column < width
    unit = tl.load(UNIT + head)
    scale = fall / (unit * unit)
    node0 = tl.load(NODE + head * SIDE + n // SIDE ** (DIMS - 1), mask=real, other=0.0)
    rest = n % SIDE ** (DIMS - 1)
    node1 = tl.load(NODE + (heads + head) * SIDE + rest // SIDE ** (DIMS - 2), mask=real, other=0.0)
    if DIMS == 3:
        node2 = tl.load(NODE + (2 * heads + head) * SIDE + rest % SIDE, mask=real, other=0.0)
    sums = tl.zeros([NODES, WIDE], tl.float32)
    count = tl.zeros([NODES], tl.float32)
    for first in range(0, points, POINTS):
        p = first + tl.arange(0, POINTS)
        here = p < points
        d0 = node0[:, None] - tl.load(AXES + head * points + p, mask=here, other=0.0)[None, :]
        away = d0 * d0
        d1 = (
            node1[:, None]
            - tl.load(AXES + (heads + head) * points + p, mask=here, other=0.0)[None, :]
        )
        away += d1 * d1
        if DIMS == 3:
            d2 = (
                node2[:, None]
                - tl.load(AXES + (2 * heads + head) * points + p, mask=here, other=0.0)[None, :]
            )
            away += d2 * d2
        heard = tl.where(here[None, :], tl.exp(away * scale), 0.0)
        vector = tl.load(
            VECTORS + (head * points + p[:, None]) * width + column[None, :],
            mask=here[:, None] & inside[None, :], other=0.0,
        )  # fmt: skip
        sums += tl.dot(heard, vector, input_precision=PRECISION)
        count += tl.sum(heard, 1)
    mean = sums / tl.maximum(count, 1e-3)[:, None]
    tl.store(
        MEANS + (head * nodes + n[:, None]) * width + column[None, :], mean,
        mask=real[:, None] & inside[None, :],
    )  # fmt: skip
    tl.store(SQUARE + head * nodes + n, tl.sum(mean * mean, 1), mask=real)


@triton.jit(do_not_specialize=["heads", "points", "nodes"])
def _choose(
    AXES, VECTORS, NODE, UNIT, MEANS, SQUARE, WAYS, heads, points, nodes, width, strict, fall,
    SIDE: tl.constexpr, DIMS: tl.constexpr, WIDE: tl.constexpr, NODES: tl.constexpr,
    POINTS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(1).to(tl.int64)
    p = tl.program_id(0) * POINTS + tl.arange(0, POINTS)
    here = p < points
    column = tl.arange(0, WIDE)
    inside = column < width
    unit = tl.load(UNIT + head)
    scale = fall / (unit * unit)
    vector = tl.load(
        VECTORS + (head * points + p[:, None]) * width + column[None, :],
        mask=here[:, None] & inside[None, :], other=0.0,
    )  # fmt: skip
    strict = strict / tl.maximum(tl.sum(vector * vector, 1), 1e-12)  # (points,)
    x0 = tl.load(AXES + head * points + p, mask=here, other=0.0)
    x1 = tl.load(AXES + (heads + head) * points + p, mask=here, other=0.0)
    way0 = tl.zeros([POINTS], tl.float32)
    way1 = tl.zeros([POINTS], tl.float32)
    if DIMS == 3:
        x2 = tl.load(AXES + (2 * heads + head) * points + p, mask=here, other=0.0)
        way2 = tl.zeros([POINTS], tl.float32)
    top = tl.full([POINTS], float("-inf"), tl.float32)
    total = tl.zeros([POINTS], tl.float32)
    for first in range(0, nodes, NODES):
        n = first + tl.arange(0, NODES)
        real = n < nodes
        mean = tl.load(
            MEANS + (head * nodes + n[:, None]) * width + column[None, :],
            mask=real[:, None] & inside[None, :], other=0.0,
        )  # fmt: skip
        square = tl.load(SQUARE + head * nodes + n, mask=real, other=0.0)
        node0 = tl.load(NODE + head * SIDE + n // SIDE ** (DIMS - 1), mask=real, other=0.0)
        rest = n % SIDE ** (DIMS - 1)
        node1 = tl.load(
            NODE + (heads + head) * SIDE + rest // SIDE ** (DIMS - 2), mask=real, other=0.0
        )
        alike = tl.dot(vector, tl.trans(mean), input_precision=PRECISION)
        d0 = node0[None, :] - x0[:, None]
        d1 = node1[None, :] - x1[:, None]
        away = d0 * d0 + d1 * d1
        if DIMS == 3:
            node2 = tl.load(NODE + (2 * heads + head) * SIDE + rest % SIDE, mask=real, other=0.0)
            d2 = node2[None, :] - x2[:, None]
            away += d2 * d2
        score = (2.0 * alike - square[None, :]) * strict[:, None] + away * scale
        score = tl.where(real[None, :], score, float("-inf"))
        higher = tl.maximum(top, tl.max(score, 1))
        kept = tl.exp(top - higher)
        weight = tl.exp(score - higher[:, None])
        total = total * kept + tl.sum(weight, 1)
        way0 = way0 * kept + tl.sum(weight * d0, 1)
        way1 = way1 * kept + tl.sum(weight * d1, 1)
        if DIMS == 3:
            way2 = way2 * kept + tl.sum(weight * d2, 1)
        top = higher
    tl.store(WAYS + head * points + p, way0 / total, mask=here)
    tl.store(WAYS + (heads + head) * points + p, way1 / total, mask=here)
    if DIMS == 3:
        tl.store(WAYS + (2 * heads + head) * points + p, way2 / total, mask=here)
