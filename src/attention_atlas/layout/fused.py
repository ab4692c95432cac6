# ruff: noqa: N803, N806  (Triton writes pointers and constants in capitals)
# mypy: disable-error-code="no-untyped-def,untyped-decorator"
"""How are the forces summed on a CUDA device without storing a pair?

The sums of `attraction`, `repulsion` and one step of `umap`, each as one Triton kernel. Every
point is summed by one program in a fixed order, so a run repeats to the last bit. Imported only
where the tensors are on CUDA; nothing here is needed on a CPU.
"""

from typing import TYPE_CHECKING

import torch
import triton
import triton.language as tl
from torch import Tensor

from attention_atlas.layout.attraction import ROWS_A_SLICE_CUDA, Ties
from attention_atlas.layout.repulsion import mesh_repulsion

if TYPE_CHECKING:
    from attention_atlas.layout.umap import Course

EVERY_PAIR = 24_000  # up to this many points, computing every pair is faster than the mesh
TILE = {2: (32, 64), 3: (32, 32)}  # pairs that a program computes together; the fastest on an H200
POINTS_A_STEP = 256


def attraction(places: Tensor, ties: Ties) -> Tensor:
    pull = torch.empty_like(places)
    grid = (len(ties.first) - 1,)
    _attract[grid](
        places, ties.first, ties.offset, ties.column, ties.weight, pull,
        DIMS=places.shape[1], ROWS=ROWS_A_SLICE_CUDA, num_warps=1,
    )  # fmt: skip
    return pull


def repulsion(places: Tensor, of: int = 0) -> tuple[Tensor, Tensor]:
    heads, points, dims = places.shape
    if points > EVERY_PAIR:
        return mesh_repulsion(places)
    potential = places.new_empty(heads, points)
    force = torch.empty_like(places)
    rows, columns = TILE[dims]
    grid = (triton.cdiv(points, rows), heads)
    _repel[grid](places, potential, force, points, dims, rows, columns, num_warps=4)
    return potential, force


def umap_step(
    places: Tensor, partner: Tensor, shift: Tensor, pace: Tensor, rate: float, course: "Course",
    out: Tensor,
) -> None:  # fmt: skip
    """Move all points (heads, points, dims) of one or two crowds by one step; writes to `out`."""
    heads, points, dims = places.shape
    grid = (triton.cdiv(points, POINTS_A_STEP), heads)
    _umap_step[grid](
        places, partner, shift, pace, rate, out, points, course.crowds[0],
        A=course.curve[0], B=course.curve[1], DIMS=dims,
        SHIFTS=shift.shape[0], FELT=course.felt, POINTS=POINTS_A_STEP, num_warps=4,
    )  # fmt: skip


@triton.jit
def _attract(Y, FIRST, OFFSET, COLUMN, WEIGHT, OUT, DIMS: tl.constexpr, ROWS: tl.constexpr):
    piece = tl.program_id(0)
    first = tl.load(FIRST + piece)
    count = tl.load(FIRST + piece + 1) - first
    at = tl.load(OFFSET + piece)
    end = tl.load(OFFSET + piece + 1)
    lane = tl.arange(0, ROWS)
    here = lane < count
    row = (first + lane) * DIMS
    x0 = tl.load(Y + row, mask=here, other=0.0)
    x1 = tl.load(Y + row + 1, mask=here, other=0.0)
    f0 = tl.zeros([ROWS], tl.float32)
    f1 = tl.zeros([ROWS], tl.float32)
    if DIMS == 3:
        x2 = tl.load(Y + row + 2, mask=here, other=0.0)
        f2 = tl.zeros([ROWS], tl.float32)
    while at < end:
        column = tl.load(COLUMN + at + lane, mask=here, other=0).to(tl.int64) * DIMS
        weight = tl.load(WEIGHT + at + lane, mask=here, other=0.0)
        d0 = x0 - tl.load(Y + column)
        d1 = x1 - tl.load(Y + column + 1)
        square = 1.0 + d0 * d0 + d1 * d1
        if DIMS == 3:
            d2 = x2 - tl.load(Y + column + 2)
            square += d2 * d2
        strength = weight / square
        f0 += strength * d0
        f1 += strength * d1
        if DIMS == 3:
            f2 += strength * d2
        at += count
    tl.store(OUT + row, f0, mask=here)
    tl.store(OUT + row + 1, f1, mask=here)
    if DIMS == 3:
        tl.store(OUT + row + 2, f2, mask=here)


@triton.jit
def _reciprocal(x):
    # one instruction; the division Triton would write takes six
    return tl.inline_asm_elementwise(
        "rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
    )


@triton.jit
def _repel(
    Y, POTENTIAL, FORCE, points, DIMS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    head = tl.program_id(1).to(tl.int64) * points
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    here = i < points
    base = Y + head * DIMS
    x0 = tl.load(base + i * DIMS, mask=here, other=0.0)[:, None]
    x1 = tl.load(base + i * DIMS + 1, mask=here, other=0.0)[:, None]
    near = tl.zeros([ROWS, COLUMNS], tl.float32)
    f0 = tl.zeros([ROWS, COLUMNS], tl.float32)
    f1 = tl.zeros([ROWS, COLUMNS], tl.float32)
    if DIMS == 3:
        x2 = tl.load(base + i * DIMS + 2, mask=here, other=0.0)[:, None]
        f2 = tl.zeros([ROWS, COLUMNS], tl.float32)
    for begin in range(0, points, COLUMNS):
        j = begin + tl.arange(0, COLUMNS)
        there = j < points
        # absent columns stand so far away that what they add is zero
        d0 = x0 - tl.load(base + j * DIMS, mask=there, other=1e18)[None, :]
        d1 = x1 - tl.load(base + j * DIMS + 1, mask=there, other=0.0)[None, :]
        square = 1.0 + d0 * d0 + d1 * d1
        if DIMS == 3:
            d2 = x2 - tl.load(base + j * DIMS + 2, mask=there, other=0.0)[None, :]
            square += d2 * d2
        q = _reciprocal(square)
        near += q
        q = q * q
        f0 += q * d0
        f1 += q * d1
        if DIMS == 3:
            f2 += q * d2
    tl.store(POTENTIAL + head + i, tl.sum(near, 1), mask=here)
    out = FORCE + head * DIMS
    tl.store(out + i * DIMS, tl.sum(f0, 1), mask=here)
    tl.store(out + i * DIMS + 1, tl.sum(f1, 1), mask=here)
    if DIMS == 3:
        tl.store(out + i * DIMS + 2, tl.sum(f2, 1), mask=here)


@triton.jit
def _cut(force, LIMIT: tl.constexpr):
    return tl.minimum(tl.maximum(force, -LIMIT), LIMIT)


@triton.jit(do_not_specialize=["points", "split"])  # compiled once, whatever the map
def _umap_step(
    Y, PARTNER, SHIFT, PACE, rate, OUT, points, split,
    A: tl.constexpr, B: tl.constexpr,
    DIMS: tl.constexpr, SHIFTS: tl.constexpr, FELT: tl.constexpr, POINTS: tl.constexpr,
):  # fmt: skip
    LIMIT: tl.constexpr = 4.0
    head = tl.program_id(1).to(tl.int64) * points
    i = tl.program_id(0) * POINTS + tl.arange(0, POINTS)
    here = i < points
    row = (head + i) * DIMS
    x0 = tl.load(Y + row, mask=here, other=0.0)
    x1 = tl.load(Y + row + 1, mask=here, other=0.0)
    partner = tl.load(PARTNER + head + i, mask=here, other=0).to(tl.int64) * DIMS
    d0 = x0 - tl.load(Y + partner)
    d1 = x1 - tl.load(Y + partner + 1)
    square = d0 * d0 + d1 * d1
    if DIMS == 3:
        x2 = tl.load(Y + row + 2, mask=here, other=0.0)
        d2 = x2 - tl.load(Y + partner + 2)
        square += d2 * d2
    square = tl.maximum(square, 1e-12)
    power = tl.exp2(B * tl.log2(square))
    strength = -2.0 * A * B * power / (square * (1.0 + A * power))
    f0 = 2.0 * _cut(strength * d0, LIMIT)
    f1 = 2.0 * _cut(strength * d1, LIMIT)
    if DIMS == 3:
        f2 = 2.0 * _cut(strength * d2, LIMIT)
    first = tl.where(i < split, 0, split)  # of the point's own crowd
    size = tl.maximum(tl.where(i < split, split, points - split), 1)
    for other in range(2 * SHIFTS):
        by = tl.load(SHIFT + other // 2) % size
        j = first + (i - first + tl.where(other % 2 == 0, by, size - by)) % size
        at = tl.where(here, (head + j) * DIMS, 0)
        d0 = x0 - tl.load(Y + at)
        d1 = x1 - tl.load(Y + at + 1)
        square = d0 * d0 + d1 * d1
        if DIMS == 3:
            d2 = x2 - tl.load(Y + at + 2)
            square += d2 * d2
        power = tl.exp2(B * tl.log2(tl.maximum(square, 1e-30)))
        strength = 2.0 * B / ((square + 1e-3) * (1.0 + A * power))
        f0 += FELT * _cut(strength * d0, LIMIT)
        f1 += FELT * _cut(strength * d1, LIMIT)
        if DIMS == 3:
            f2 += FELT * _cut(strength * d2, LIMIT)
    pace = rate * tl.load(PACE + head + i, mask=here, other=0.0)
    tl.store(OUT + row, x0 + pace * f0, mask=here)
    tl.store(OUT + row + 1, x1 + pace * f1, mask=here)
    if DIMS == 3:
        tl.store(OUT + row + 2, x2 + pace * f2, mask=here)
