# ruff: noqa: N803  (Triton writes pointers and constants in capitals)
# mypy: disable-error-code="no-untyped-def,untyped-decorator"
"""How is every c of the grid tried for every head in one CUDA kernel?

The sums of `joint.weighted_correlation`: a program takes one c of one head and keeps all pairs of
it in registers. Imported only where the tensors are on CUDA.
"""

import triton
import triton.language as tl
from torch import Tensor


def scale_scores(tried: Tensor, a2: Tensor, b2: Tensor, cross: Tensor, dot: Tensor) -> Tensor:
    """Correlate distance and dot product for each c that is tried: (grid, heads).

    tried  (grid, heads); a2 (heads, n, 1) and b2 (heads, 1, m) squared lengths
    cross  (heads, n, m) what products take from the squared distance; dot (heads, n, m)
    """
    heads, n, m = dot.shape
    scores = tried.new_empty(tried.shape)
    _correlate[(len(tried), heads)](
        tried.contiguous(), a2.contiguous(), b2.contiguous(), cross.contiguous(),
        dot.contiguous(), scores, heads, n, m,
        N=triton.next_power_of_2(n), M=triton.next_power_of_2(m), num_warps=16,
    )  # fmt: skip
    return scores


@triton.jit
def _sum(values):
    return tl.sum(tl.sum(values, 1), 0)


@triton.jit(do_not_specialize=["heads", "n", "m"])
def _correlate(
    TRIED, A2, B2, CROSS, DOT, SCORES, heads, n, m, N: tl.constexpr, M: tl.constexpr
):  # fmt: skip
    head = tl.program_id(1).to(tl.int64)
    at = tl.program_id(0) * heads + head
    c = tl.load(TRIED + at)
    c2 = c * c
    i = tl.arange(0, N)
    j = tl.arange(0, M)
    real = (i < n)[:, None] & (j < m)[None, :]
    pair = head * n * m + i[:, None] * m + j[None, :]
    a2 = tl.load(A2 + head * n + i, mask=i < n, other=0.0)[:, None]
    b2 = tl.load(B2 + head * m + j, mask=j < m, other=0.0)[None, :]
    square = a2 * c2 + b2 / c2 - tl.load(CROSS + pair, mask=real, other=0.0)
    distance = tl.where(real, tl.sqrt(tl.maximum(square, 0.0)), 0.0)
    dot = tl.load(DOT + pair, mask=real, other=0.0)
    ratio = distance / tl.maximum(_sum(distance) / (n * m), 1e-12)
    weight = tl.where(real, tl.exp(-ratio * ratio), 0.0)
    weight = weight / _sum(weight)
    x = _sum(weight * distance) - distance
    y = dot - _sum(weight * dot)
    spread = _sum(weight * x * x) * _sum(weight * y * y)
    tl.store(SCORES + at, _sum(weight * x * y) / tl.sqrt(tl.maximum(spread, 1e-24)))
