"""What do shapes need of an input's rows? A few sums, which add up over blocks of rows.

Keys set aside are removed from every row, the other weights are scaled to sum to one again, and a
row with almost nothing left does not count.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from attention_atlas.measure.row_block import Bools, Floats, RowBlock

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


def shape_sums(block: RowBlock, aside: Bools | None = None) -> ShapeSums:
    """Compute the sums of a block; keys `aside` (M,) are left out."""
    kept = block.seen if aside is None else block.seen & ~aside
    weights, left, mass = _looked_at(block.weights, aside)
    keys = kept.sum(1)  # (R,)
    even = np.where(keys > 0, 1 / np.maximum(keys, 1), 0.0)  # (R,)
    held, counts = _targets(weights, kept, None if aside is not None else block.keys.special)
    flat = (kept * even[:, None]).astype(weights.dtype)
    away = mass.astype(weights.dtype)[:, :, None] * flat
    np.abs(np.subtract(weights, away, out=away), out=away)
    counts_of_rows = len(keys), kept.size, block.seen[:, -1].sum(), kept[:, -1].sum()
    return ShapeSums._make((
        *map(np.array, counts_of_rows), left.sum(1), mass @ (keys > 0), held,
        (counts * even) @ mass.T, away.sum(2, dtype=np.float64).sum(1) / 2,
        mass @ np.where(keys > 0, 1 - even, 0), mass @ (1 - even) ** keys,
        *_diagonals(weights, kept, block.rows, mass, even),
    ))  # fmt: skip


def _looked_at(weights: Floats, aside: Bools | None) -> tuple[Floats, Floats, Floats]:
    """Remove keys `aside`, scale rows to one; returns weights, (H, R) sums before and after."""
    if aside is None:
        left = weights.sum(2).astype(np.float64)
        return weights, left, left
    weights = weights * ~aside
    left = weights.sum(2)
    counts = left >= LEAST_LEFT
    weights /= np.where(counts, left, np.inf)[:, :, None].astype(weights.dtype)
    return weights, left.astype(np.float64), counts.astype(np.float64)


def _targets(weights: Floats, kept: Bools, special: Bools | None) -> tuple[Floats, Floats]:
    """Sum the attention on each target; returns (T, H), and how many of its keys each row sees."""
    marks = np.zeros(kept.shape[1], bool) if special is None else special.copy()
    marks[0] = False
    last_seen = kept.shape[1] - 1 - kept[:, ::-1].argmax(1)  # (R,)
    rows = np.arange(len(kept))
    visible = [
        kept[:, :1],
        kept[:, -1:],
        kept[:, marks],
        (kept[rows, last_seen] & (last_seen > 0))[:, None],
    ]
    looked = [
        weights[:, :, :1],
        weights[:, :, -1:],
        weights[:, :, marks],
        weights[:, rows, last_seen, None],
    ]
    held = [
        (part * seen).sum((1, 2), dtype=np.float64)
        for part, seen in zip(looked, visible, strict=True)
    ]
    return np.stack(held), np.stack([seen.sum(1) for seen in visible])


def _diagonals(
    weights: Floats, kept: Bools, rows: npt.NDArray[np.intp], mass: Floats, even: Floats
) -> tuple[Floats, ...]:
    """Sum by offset; a row whose target is outside the input or unseen does not count."""
    columns = rows[:, None] - offsets(kept.shape[1])  # (R, O)
    inside = (columns >= 0) & (columns < kept.shape[1])
    columns = np.where(inside, columns, 0)
    index = np.arange(len(rows))[:, None]
    visible = kept[index, columns] & inside  # (R, O)
    held = (weights[:, index, columns] * visible).sum(1, dtype=np.float64)
    three = wide(visible.astype(np.int64), 3)
    return (
        held, (mass * even) @ visible, mass @ visible, mass @ (three > 0), visible.sum(0),
        (three == 3).sum(0),
    )  # fmt: skip


def offsets(keys: int) -> npt.NDArray[np.intp]:
    """List the offsets i − j in reach, and one more on each side, for neighbours; returns (O,)."""
    reach = max(1, min(keys // 4, FARTHEST))
    return np.arange(-reach - 1, reach + 2)


def wide(values: Floats, width: int) -> Floats:
    """Sum `width` neighbours along the last axis."""
    if width == 1:
        return values
    length = values.shape[-1] - width + 1
    return np.asarray(sum(values[..., start : start + length] for start in range(width)))
