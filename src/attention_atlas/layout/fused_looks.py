# ruff: noqa: N803  (Triton writes pointers and constants in capitals)
# mypy: disable-error-code="no-untyped-def,untyped-decorator"
"""How does every query look at its keys in one CUDA kernel?

The sums of `LookForce.step`. A program takes some queries and goes through their keys twice: to sum
what the map puts on each, then to add up forces. What keys feel is added in whole numbers, which
give the same sum in any order. Imported only where the tensors are on CUDA.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from attention_atlas.layout.looks import FALL, NEAR, WHOLE, WITH_SPECIAL, LookForce

QUERIES = 128  # of a program


def look_sums(force: LookForce, axes: Tensor, unit: Tensor) -> tuple[Tensor, Tensor]:
    """Sum what draws and pushes each point, (rows,), and the force on it, (dims, rows).

    axes  (dims, rows) places; unit (queries,) the size of each query's map
    """
    assert FALL == 2  # the kernel squares
    keys, queries = force.key.shape
    own = axes.new_empty(len(axes) + 1, queries)
    whole = torch.zeros(len(axes) + 1, axes.shape[1], dtype=torch.int64, device=axes.device)
    _look[(triton.cdiv(queries, QUERIES),)](
        axes.contiguous(), force.query, force.key32, force.wanted, force.flags, unit.contiguous(),
        own, whole, queries, axes.shape[1], force.settled,
        KEYS=keys, DIMS=len(axes), NEAR=NEAR, SPECIAL=WITH_SPECIAL, WHOLE=WHOLE, QUERIES=QUERIES,
        num_warps=4,
    )  # fmt: skip
    sums = whole.to(axes.dtype).mul_(1 / WHOLE)
    sums[:, force.query] = own  # no point is query and key
    return sums[0], sums[1:]


@triton.jit(do_not_specialize=["queries", "points"])
def _look(
    AXES, QUERY, KEY, WANTED, FLAGS, UNIT, OWN, SUMS, queries, points, settled,
    KEYS: tl.constexpr, DIMS: tl.constexpr, NEAR: tl.constexpr, SPECIAL: tl.constexpr,
    WHOLE: tl.constexpr, QUERIES: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0).to(tl.int64) * QUERIES + tl.arange(0, QUERIES)
    here = i < queries
    query = tl.load(QUERY + i, mask=here, other=0)
    unit = tl.load(UNIT + i, mask=here, other=1.0)
    scale = 1.0 / (unit * unit)
    x0 = tl.load(AXES + query)
    x1 = tl.load(AXES + points + query)
    if DIMS == 3:
        x2 = tl.load(AXES + 2 * points + query)
    sum_ordinary = tl.zeros([QUERIES], tl.float32)
    sum_all = tl.zeros([QUERIES], tl.float32)
    nearer = tl.zeros([QUERIES], tl.int32)
    first = tl.zeros([QUERIES], tl.float32)
    for k in range(KEYS):
        at = i + k * queries
        key = tl.load(KEY + at, mask=here, other=0)
        flags = tl.load(FLAGS + at, mask=here, other=0)
        d0 = x0 - tl.load(AXES + key)
        d1 = x1 - tl.load(AXES + points + key)
        away = d0 * d0 + d1 * d1
        if DIMS == 3:
            d2 = x2 - tl.load(AXES + 2 * points + key)
            away += d2 * d2
        first = tl.where(k == 0, away, first)
        close = 1.0 / (1.0 + away * scale)
        shown = tl.where(flags > 0, close * close, 0.0)
        ordinary = flags > 1
        sum_all += shown
        sum_ordinary += tl.where(ordinary, shown, 0.0)
        nearer += (ordinary & (away < first)).to(tl.int32)
    sum_ordinary = (1.0 - SPECIAL) / tl.maximum(sum_ordinary, 1e-12)
    sum_all = SPECIAL / tl.maximum(sum_all, 1e-12)
    felt = 4.0 * tl.where(nearer < NEAR, settled, 1.0)
    mass = tl.zeros([QUERIES], tl.float32)
    f0 = tl.zeros([QUERIES], tl.float32)
    f1 = tl.zeros([QUERIES], tl.float32)
    f2 = tl.zeros([QUERIES], tl.float32)
    for k in range(KEYS):
        at = i + k * queries
        key = tl.load(KEY + at, mask=here, other=0)
        flags = tl.load(FLAGS + at, mask=here, other=0)
        wanted = tl.load(WANTED + at, mask=here, other=0.0)
        d0 = x0 - tl.load(AXES + key)
        d1 = x1 - tl.load(AXES + points + key)
        away = d0 * d0 + d1 * d1
        if DIMS == 3:
            d2 = x2 - tl.load(AXES + 2 * points + key)
            away += d2 * d2
        close = 1.0 / (1.0 + away * scale)
        shown = tl.where(flags > 0, close * close, 0.0)
        excess = wanted - tl.where(flags > 1, shown * sum_ordinary, 0.0) - shown * sum_all
        pull = excess * close * felt
        size = tl.abs(pull)
        d0 *= pull
        d1 *= pull
        mass += size
        f0 += d0
        f1 += d1
        felt_by_key = here & (flags > 0)  # another key pulls with 0
        tl.atomic_add(SUMS + key, (size * WHOLE).to(tl.int64), mask=felt_by_key, sem="relaxed")
        tl.atomic_add(
            SUMS + points + key, (d0 * -WHOLE).to(tl.int64), mask=felt_by_key, sem="relaxed"
        )
        tl.atomic_add(
            SUMS + 2 * points + key, (d1 * -WHOLE).to(tl.int64), mask=felt_by_key, sem="relaxed"
        )
        if DIMS == 3:
            d2 *= pull
            f2 += d2
            tl.atomic_add(
                SUMS + 3 * points + key, (d2 * -WHOLE).to(tl.int64), mask=felt_by_key,
                sem="relaxed",
            )  # fmt: skip
    tl.store(OWN + i, mass, mask=here)
    tl.store(OWN + queries + i, f0, mask=here)
    tl.store(OWN + 2 * queries + i, f1, mask=here)
    if DIMS == 3:
        tl.store(OWN + 3 * queries + i, f2, mask=here)
