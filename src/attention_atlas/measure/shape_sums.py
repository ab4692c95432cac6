"""What do shapes need of an input's rows? A few sums, which add up over blocks of rows.

Keys set aside are removed from every row, the other weights are scaled to sum to one again, and a
row with almost nothing left does not count.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from attention_atlas.measure.arrays import Floats, namespace, numbers
from attention_atlas.measure.row_block import RowBlock

FARTHEST = 32  # offsets tried, or a quarter of the keys
LEAST_LEFT = 0.05  # weight that a row must have outside keys set aside to count
FIRST, LAST, DELIMITERS, LAST_SEEN = range(4)  # targets; the last key seen, if not the first


class ShapeSums(NamedTuple):
    """Sums over rows that shapes are computed from. T targets; O offsets, one beyond each end."""

    rows: Floats  # how many there are
    pairs: Floats  # of a row and a key, whether seen or not
    sees_last: Floats  # how many of them see the last key
    keeps_last: Floats  # and how many where it was not set aside
    left: Floats  # (H,) attention outside keys set aside, before scaling
    mass: Floats  # (H,) the same after scaling
    held: Floats  # (T, H) attention on each target
    expected: Floats  # (T, H) what even rows would have there
    uneven: Floats  # (H,) distance from even
    farthest: Floats  # (H,) the same where every row looks at one key
    by_chance: Floats  # (H,) the same where every row is split at random
    on_offset: Floats  # (H, O) attention on each offset
    even_offset: Floats  # (H, O) what even rows would have there
    follow_one: Floats  # (H, O) attention of rows that see the key at this offset
    follow_three: Floats  # (H, O − 2) of rows that see one of three
    see_one: Floats  # (O,) how many rows see the key at this offset
    see_three: Floats  # (O − 2,) how many see all three


class Diagonals(NamedTuple):
    """The weights of a block near the diagonal."""

    columns: Any  # (R, O) the key at each offset, 0 where it is outside
    inside: Any  # (R, O)
    weights: Any  # (H, R, O)


def near_diagonal(block: RowBlock) -> Diagonals:
    """Get the weights of a block at all offsets in reach."""
    columns = block.rows[:, None] - numbers(block.weights, *reach(len(block.tokens.ids)))
    inside = (columns >= 0) & (columns < block.seen.shape[1])
    columns = block.xp.where(inside, columns, 0)
    index = numbers(block.weights, len(columns))[:, None]
    return Diagonals(columns, inside, block.weights[:, index, columns])


def shape_sums(block: RowBlock, diagonals: Diagonals, aside: Any = None) -> ShapeSums:
    """Compute the sums of a block; keys `aside` (M,) are left out."""
    xp = block.xp
    kept = block.seen if aside is None else block.seen & ~aside
    left, scale = _looked_at(block, aside)
    keys = kept.sum(1)  # (R,)
    sees = xp.asarray(keys > 0, dtype=xp.float64)
    even = sees / xp.clip(keys, 1, None)  # (R,)
    mass = left * scale
    targets = _Targets(block, kept, block.keys.special if aside is None else None)
    count = len(block.tokens.ids)
    last = [pairs[:, count - 1 :].sum() for pairs in (block.seen, kept)]
    counts = len(keys), len(keys) * count, *last
    return ShapeSums._make((
        *(xp.asarray(count, dtype=xp.float64) for count in counts), left.sum(1), mass @ sees,
        targets.held(scale), (targets.counts * even) @ mass.T,
        (_uneven(block, aside, left * even) * scale * (1 + sees) / 2).sum(1),
        mass @ (sees * (1 - even)), mass @ (1 - even) ** keys,
        *_by_offset(diagonals, kept, scale, mass, even),
    ))  # fmt: skip


def _looked_at(block: RowBlock, aside: Any) -> tuple[Any, Any]:
    """Sum the weights of rows outside keys `aside`; returns sums, and factors to one; (H, R)."""
    xp = block.xp
    if aside is None:
        left = xp.asarray(block.mass, dtype=xp.float64)
        return left, xp.ones_like(left)
    total = block.total(~aside) if block.sums is None else block.sums.left
    left = xp.asarray(total, dtype=xp.float64)
    return left, xp.where(left >= LEAST_LEFT, 1 / xp.clip(left, LEAST_LEFT, None), 0.0)


def _uneven(block: RowBlock, aside: Any, even: Any) -> Any:
    """Sum what weights outside keys `aside` have above an even one, (H, R); returns (H, R).

    Rows and even rows have the same sum, so this is half the sum of all differences.
    """
    xp = block.xp
    if block.sums is not None:
        over = block.sums.over if aside is None else block.sums.over_aside
        return xp.asarray(over, dtype=xp.float64)
    floor = xp.asarray(even, dtype=block.weights.dtype)
    raised = xp.maximum(block.weights, floor[:, :, None])
    if aside is None:
        total, keys = raised.sum(2), block.seen.shape[1]
    else:
        total, keys = block.of(raised).total(~aside), (~aside).sum()
    return xp.asarray(total, dtype=xp.float64) - xp.asarray(floor, dtype=xp.float64) * keys


class _Targets:
    """What rows see and hold of the first key, the last, delimiters and the last one seen."""

    def __init__(self, block: RowBlock, kept: Any, special: Any):
        xp, weights = block.xp, block.weights
        none = kept.sum(1) * 0
        last_seen = xp.amax(kept * block.columns, axis=1)  # (R,)
        index = numbers(weights, len(kept))
        own = kept[index, last_seen] & (last_seen > 0)
        whole = kept.shape[1] == len(block.tokens.ids)
        counts = [xp.asarray(kept[:, 0], dtype=none.dtype), none, none, own]
        parts = [weights[:, :, 0], None, None, weights[:, index, last_seen]]
        if whole:
            counts[LAST], parts[LAST] = kept[:, -1], weights[:, :, -1]
        if special is not None:
            marks = special & (block.columns > 0)
            counts[DELIMITERS] = (kept & marks).sum(1)
            parts[DELIMITERS] = block.total(marks)
        self.counts = xp.stack([xp.asarray(count, dtype=xp.float64) for count in counts])  # (T, R)
        self._parts = parts

    def held(self, scale: Any) -> Any:
        """Sum the attention on each target, in rows that see it; returns (T, H)."""
        xp = namespace(scale)
        return xp.stack([
            scale @ (count * 0) if part is None else (part * scale) @ xp.clip(count, 0, 1)
            for count, part in zip(self.counts, self._parts, strict=True)
        ])  # fmt: skip


def _by_offset(
    diagonals: Diagonals, kept: Any, scale: Any, mass: Any, even: Any
) -> tuple[Any, ...]:
    """Sum by offset; a row whose target is outside the input or unseen does not count."""
    xp = namespace(mass)
    columns, inside, weights = diagonals
    index = numbers(mass, len(columns))[:, None]
    visible = kept[index, columns] & inside  # (R, O)
    seen = xp.asarray(visible, dtype=xp.float64)
    held = (weights * scale[:, :, None] * seen).sum(1)
    three = wide(seen, 3)
    some, all_three = (xp.asarray(rows, dtype=xp.float64) for rows in (three > 0, three == 3))
    return (
        held, (mass * even) @ seen, mass @ seen, mass @ some, seen.sum(0), all_three.sum(0),
    )  # fmt: skip


def offsets(keys: int) -> npt.NDArray[np.intp]:
    """List the offsets i − j in reach, and one more on each side, for neighbours; returns (O,)."""
    return np.arange(*reach(keys))


def reach(keys: int) -> tuple[int, int]:
    """Get the first of these offsets, and the one after the last."""
    farthest = max(1, min(keys // 4, FARTHEST))
    return -farthest - 1, farthest + 2


def wide(values: Any, width: int) -> Any:
    """Sum `width` neighbours along the last axis."""
    if width == 1:
        return values
    length = values.shape[-1] - width + 1
    return sum(values[..., start : start + length] for start in range(width))
