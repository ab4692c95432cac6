# ruff: noqa: N803  (Triton writes pointers and constants in capitals)
# mypy: disable-error-code="no-untyped-def,untyped-decorator"
"""How are long rows searched on a CUDA device without sorting them?

The largest numbers of a row are found by halving: a row stays in registers while a number that k of
its groups reach is searched among all floats, whose bits are in their order; the few numbers that
reach it are put in order. The rank of a few numbers in a row is counted, and so are the ranks of
all numbers of a short row: comparing all pairs of them is faster than sorting.
Imported only where the tensors are on CUDA.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

GROUPS = 256  # of a row; more than are searched for
RANKED = 64  # numbers of a row that a program ranks, and that it compares them with at once
_PAIRS = 8192  # of a number of a row and a wanted one that are compared at once


def best_of_rows(
    scores: Tensor, k: int, less: Tensor | None = None, own: int | None = None
) -> tuple[Tensor, Tensor]:
    """Find the k largest of each row, as `neighbours.largest` does."""
    heads, rows, columns = scores.shape
    scores = scores.contiguous()
    room = triton.next_power_of_2(2 * k)
    value = torch.full((heads, rows, room), -torch.inf, device=scores.device)
    column = torch.zeros(heads, rows, room, dtype=torch.int32, device=scores.device)
    wide = max(GROUPS, triton.next_power_of_2(columns))
    cost = scores.new_zeros(heads, columns) if less is None else less.contiguous()
    _best[(rows, heads)](
        scores, cost, value, column, rows, columns, k, room, -rows if own is None else own,
        WIDE=wide, GROUPS=GROUPS, num_warps=max(1, min(16, wide // 1024)), maxnreg=80,
    )  # fmt: skip
    value, order = value.topk(k, 2)
    return value, column.long().gather(2, order)


def count_below(rows: Tensor, wanted: Tensor) -> Tensor:
    """Count the numbers of each row (…, M) that are below each of some (…, k); returns (…, k)."""
    k, columns = wanted.shape[-1], rows.shape[-1]
    counts = torch.empty(wanted.shape, dtype=torch.int32, device=rows.device)
    wide = triton.next_power_of_2(k)
    _count[(rows.numel() // columns,)](
        rows.contiguous(), wanted.contiguous(), counts, columns, k,
        WANTED=wide, COLUMNS=max(16, _PAIRS // wide), num_warps=4,
    )  # fmt: skip
    return counts


def row_ranks(rows: Tensor) -> Tensor:
    """Rank the numbers of each row (…, M) with mean 0; equal ones share their mean rank."""
    columns = rows.shape[-1]
    ranks = torch.empty(rows.shape, dtype=torch.float32, device=rows.device)
    grid = (rows.numel() // columns, triton.cdiv(columns, RANKED))
    _rank[grid](rows.contiguous(), ranks, columns, RANKED=RANKED, num_warps=4)
    return ranks


@triton.jit(do_not_specialize=["rows", "columns", "k", "room", "own"])  # compiling takes a second
def _best(
    SCORES, COST, VALUE, COLUMN, rows, columns, k, room, own,
    WIDE: tl.constexpr, GROUPS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0)
    head = tl.program_id(1).to(tl.int64)
    at = head * rows + row
    column = tl.arange(0, WIDE)
    here = column < columns
    score = tl.load(SCORES + at * columns + column, mask=here, other=0.0)
    score -= tl.load(COST + head * columns + column, mask=here, other=0.0)
    score = tl.where(column == row + own, float("-inf"), score)
    bits = score.to(tl.int32, bitcast=True)
    key = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)  # in the order of the floats
    key = tl.where(here, key, -0x80000000)  # below −∞
    # At least k groups have a number that reaches `low`, so at least k numbers do, and few more.
    top = tl.max(tl.reshape(key, [WIDE // GROUPS, GROUPS]), 0)  # neighbours in several groups
    low = tl.min(top, 0)
    high = tl.max(top, 0)
    reach = tl.sum((top >= low).to(tl.int32), 0)
    while (low < high) & (reach > k + k // 4):
        middle = (low | high) - ((low ^ high) >> 1)  # rounded up, without overflow
        count = tl.sum((top >= middle).to(tl.int32), 0)
        enough = count >= k
        reach = tl.where(enough, count, reach)
        low = tl.where(enough, middle, low)
        high = tl.where(enough, high, middle - 1)
    high = tl.max(top, 0)
    reach = tl.sum((key >= low).to(tl.int32), 0)
    while (low < high) & (reach > room):  # seldom: many numbers of one group are large
        middle = (low | high) - ((low ^ high) >> 1)
        count = tl.sum((key >= middle).to(tl.int32), 0)
        enough = count >= k
        reach = tl.where(enough, count, reach)
        low = tl.where(enough, middle, low)
        high = tl.where(enough, high, middle - 1)
    above = key > low
    equal = (key == low).to(tl.int32)
    missing = room - tl.sum(above.to(tl.int32), 0)
    taken = above | ((equal > 0) & (tl.cumsum(equal, 0) <= missing))
    place = tl.cumsum(taken.to(tl.int32), 0) - 1
    bits = tl.where(key < 0, key ^ 0x7FFFFFFF, key)  # the float again, so that one of them is kept
    tl.store(VALUE + at * room + place, bits.to(tl.float32, bitcast=True), mask=taken)
    tl.store(COLUMN + at * room + place, column, mask=taken)


@triton.jit(do_not_specialize=["columns", "k"])
def _count(ROWS, WANTED_OF, COUNTS, columns, k, WANTED: tl.constexpr, COLUMNS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    which = tl.arange(0, WANTED)
    real = which < k
    wanted = tl.load(WANTED_OF + row * k + which, mask=real, other=0.0)
    counts = tl.zeros([WANTED, COLUMNS], tl.int32)
    for first in range(0, columns, COLUMNS):
        column = first + tl.arange(0, COLUMNS)
        value = tl.load(ROWS + row * columns + column, mask=column < columns, other=float("inf"))
        counts += (value[None, :] < wanted[:, None]).to(tl.int32)
    tl.store(COUNTS + row * k + which, tl.sum(counts, 1), mask=real)


@triton.jit(do_not_specialize=["columns"])
def _rank(ROWS, RANKS, columns, RANKED: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    mine = tl.program_id(1) * RANKED + tl.arange(0, RANKED)
    value = tl.load(ROWS + row + mine, mask=mine < columns, other=0.0)[:, None]
    counts = tl.zeros([RANKED, RANKED], tl.int32)
    for first in range(0, columns, RANKED):
        column = first + tl.arange(0, RANKED)
        # nothing is below NaN, nor equal to it
        other = tl.load(ROWS + row + column, mask=column < columns, other=float("nan"))[None, :]
        counts += (other < value).to(tl.int32) + (other <= value).to(tl.int32)
    rank = (tl.sum(counts, 1) - columns).to(tl.float32) / 2
    tl.store(RANKS + row + mine, rank, mask=mine < columns)
