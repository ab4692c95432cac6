# ruff: noqa: N803  (Triton writes pointers and constants in capitals)
# mypy: disable-error-code="no-untyped-def,untyped-decorator"
"""What do the rows of a block add up to, on a CUDA device, in one reading of the weights?

Measures of rows are sums over keys: of weights, of weights times a distance, of their logarithms.
Each by itself reads all weights of a block, and some write as many numbers in between: about
seventy such passes. One kernel sums them all. Imported only where the weights are on CUDA.
"""

from threading import Lock
from typing import Any

import torch
import triton
import triton.language as tl

from attention_atlas.measure.row_block import Keys, RowBlock
from attention_atlas.measure.row_sums import FIELDS, RowSums, even_shares, usual_numbers

MOST_KEYS = 512  # of a row at once
_compiling = Lock()  # two threads would each compile the kernel


def row_sums(block: RowBlock) -> RowSums:
    """Sum up the rows of a block whose weights, and products if any, are as they were computed."""
    weights: Any = block.weights
    seen: Any = block.seen
    heads, rows, keys = weights.shape
    sums = torch.empty(len(FIELDS), heads, rows, device=weights.device)
    aside, even, even_aside = even_shares(block)
    # What a block does not have is summed all the same, from other numbers, and not looked at:
    # to compile the kernel a second time takes longer than any block.
    dots: Any = weights if block.products is None else block.products
    nothing = weights.new_zeros(heads, rows), weights.new_zeros(heads, keys)
    usual = (*nothing, nothing[0][:, 0], nothing[0][:, 0])
    square_q, square_k, middle, mean = usual if block.products is None else usual_numbers(block)
    lengths: Any = nothing[1] if block.tokens.values is None else block.tokens.value_lengths
    wide = min(MOST_KEYS, triton.next_power_of_2(keys))
    with _compiling:
        _sum_rows[(rows, heads)](
            weights.contiguous(), dots.contiguous(), seen.contiguous().view(torch.uint8),
            aside.contiguous().view(torch.uint8), block.rows, even.float(), even_aside.float(),
            square_q, square_k, middle.contiguous(), mean.contiguous(), lengths, sums,
            rows, keys, square_k.stride(0), lengths.stride(0),
            WIDE=wide, num_warps=max(1, wide // 128),
        )  # fmt: skip
    return RowSums(*sums)


def compile_ahead(device: str) -> None:
    """Compile the kernel of rows that are longer than half of MOST_KEYS, by a row of no weights."""
    keys = torch.zeros(MOST_KEYS, device=device, dtype=torch.int64)
    none = torch.zeros(MOST_KEYS, device=device, dtype=torch.bool)
    weights: Any = torch.zeros(1, 1, MOST_KEYS, device=device)
    tokens: Any = Keys(keys, none, none)  # type: ignore[arg-type]
    row_sums(RowBlock(weights, keys[:1], none[None], tokens))  # type: ignore[arg-type]


@triton.jit(do_not_specialize=["rows", "keys", "k_stride", "v_stride"])
def _sum_rows(
    WEIGHTS, DOTS_OF, SEEN, ASIDE, ROWS, EVEN, EVEN_ASIDE, SQUARE_Q, SQUARE_K, MIDDLE, USUAL,
    LENGTHS, OUT, rows, keys, k_stride, v_stride, WIDE: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0)
    head = tl.program_id(1).to(tl.int64)
    at = head * rows + row
    line = at * keys
    mask_line = row.to(tl.int64) * keys
    position = tl.load(ROWS + row).to(tl.int32)
    mass = tl.zeros([WIDE], tl.float32)
    largest = tl.zeros([WIDE], tl.float32)
    entropy = tl.zeros([WIDE], tl.float32)
    distance = tl.zeros([WIDE], tl.float32)
    square = tl.zeros([WIDE], tl.float32)
    left = tl.zeros([WIDE], tl.float32)
    valued = tl.zeros([WIDE], tl.float32)
    a = tl.zeros([WIDE], tl.float32)
    b = tl.zeros([WIDE], tl.float32)
    aa = tl.zeros([WIDE], tl.float32)
    bb = tl.zeros([WIDE], tl.float32)
    ab = tl.zeros([WIDE], tl.float32)
    square_q = tl.load(SQUARE_Q + at)
    middle = tl.load(MIDDLE + head)
    usual = tl.load(USUAL + head)
    for first in range(0, keys, WIDE):
        key = first + tl.arange(0, WIDE)
        here = key < keys
        weight = tl.load(WEIGHTS + line + key, mask=here, other=0.0)
        apart = tl.abs(position - key).to(tl.float32)
        kept = tl.load(ASIDE + key, mask=here, other=1) == 0
        mass += weight
        largest = tl.maximum(largest, weight)
        entropy -= weight * tl.log(tl.maximum(weight, 1e-12))
        distance += weight * apart
        square += weight * (apart * apart)
        left += tl.where(kept, weight, 0.0)
        valued += weight * tl.load(LENGTHS + head * v_stride + key, mask=here, other=0.0)
        seen = tl.load(SEEN + mask_line + key, mask=here, other=0) > 0
        dot = tl.load(DOTS_OF + line + key, mask=here, other=0.0)
        square_k = tl.load(SQUARE_K + head * k_stride + key, mask=here, other=0.0)
        away = tl.sqrt(tl.maximum(square_q + square_k - 2.0 * dot, 0.0)) - usual
        away = tl.where(seen, away, 0.0)
        dot = tl.where(seen, dot - middle, 0.0)
        a += dot
        b += away
        aa += dot * dot
        bb += away * away
        ab += dot * away
    all_mass = tl.sum(mass, 0)
    all_left = tl.sum(left, 0)
    floor = all_mass * tl.load(EVEN + row)
    floor_aside = all_left * tl.load(EVEN_ASIDE + row)
    over = tl.zeros([WIDE], tl.float32)
    over_aside = tl.zeros([WIDE], tl.float32)
    grown = tl.zeros([WIDE], tl.float32)
    factor = tl.maximum(all_mass, 1e-12) / tl.maximum(tl.sum(valued, 0), 1e-12)
    for first in range(0, keys, WIDE):
        key = first + tl.arange(0, WIDE)
        here = key < keys
        weight = tl.load(WEIGHTS + line + key, mask=here, other=0.0)
        kept = tl.load(ASIDE + key, mask=here, other=1) == 0
        over += tl.maximum(weight - floor, 0.0)
        over_aside += tl.where(kept, tl.maximum(weight - floor_aside, 0.0), 0.0)
        length = tl.load(LENGTHS + head * v_stride + key, mask=here, other=0.0)
        grown += weight * tl.maximum(length * factor, 1.0)
    size = tl.num_programs(1).to(tl.int64) * rows
    tl.store(OUT + at, all_mass)
    tl.store(OUT + size + at, tl.max(largest, 0))
    tl.store(OUT + 2 * size + at, tl.sum(entropy, 0))
    tl.store(OUT + 3 * size + at, tl.sum(distance, 0))
    tl.store(OUT + 4 * size + at, tl.sum(square, 0))
    tl.store(OUT + 5 * size + at, all_left)
    tl.store(OUT + 6 * size + at, tl.sum(over, 0))
    tl.store(OUT + 7 * size + at, tl.sum(over_aside, 0))
    tl.store(OUT + 8 * size + at, tl.sum(grown, 0))
    tl.store(OUT + 9 * size + at, tl.sum(a, 0))
    tl.store(OUT + 10 * size + at, tl.sum(b, 0))
    tl.store(OUT + 11 * size + at, tl.sum(aa, 0))
    tl.store(OUT + 12 * size + at, tl.sum(bb, 0))
    tl.store(OUT + 13 * size + at, tl.sum(ab, 0))
