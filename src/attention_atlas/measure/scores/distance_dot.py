"""Does a query lie near the keys it looks at? −1 is perfect: distance falls as q·k grows."""

from typing import Any

import numpy as np

from attention_atlas.measure.accumulate import Accumulator, State
from attention_atlas.measure.arrays import Floats, inner
from attention_atlas.measure.definition import Measure
from attention_atlas.measure.row_block import RowBlock
from attention_atlas.measure.row_sums import usual_numbers


class DistanceDot(Accumulator):
    """The number of pairs, both means, and the squares and products about the means."""

    def state(self, block: RowBlock) -> State:
        xp = block.xp
        usual = usual_numbers(block)
        summed = block.sums is not None and block.products is not None
        of_rows = block.sums[-5:] if summed else _plain_sums(block, usual)  # type: ignore[index]
        count = xp.asarray(block.visible.sum(), dtype=xp.float64)
        pairs = count.clip(1, None)
        a, b, *products = (xp.sum(values, axis=1, dtype=xp.float64) for values in of_rows)
        means = a / pairs, b / pairs
        squares = means[0] * means[0], means[1] * means[1], means[0] * means[1]
        moments = [
            product - pairs * square for product, square in zip(products, squares, strict=True)
        ]
        return count, usual[2] + means[0], usual[3] + means[1], *moments

    def join(self, left: State, right: State) -> State:
        """Join the states of two blocks, as exactly as from all pairs (Chan et al. 1979)."""
        count = left[0] + right[0]
        a, b = (right[side] - left[side] for side in (1, 2))
        most = count.clip(1, None)
        part, both = right[0] / most, left[0] * right[0] / most
        apart = a * a, b * b, a * b
        moments = (x + y + both * z for x, y, z in zip(left[3:], right[3:], apart, strict=True))
        return count, left[1] + part * a, left[2] + part * b, *moments

    def value(self, state: State) -> Floats:
        count, _, _, aa, bb, ab = state
        # Squares of almost equal numbers are zero but for rounding, and may come out below it.
        size = np.sqrt(np.maximum(aa, 0) * np.maximum(bb, 0))
        return np.where((count > 2) & (size > 1e-12), ab / np.maximum(size, 1e-12), np.nan)


def _plain_sums(block: RowBlock, usual: tuple[Any, Any, Any, Any]) -> tuple[Any, ...]:
    """Sum q·k and |q − k|, less usual numbers, and their products over the keys of each row."""
    xp, (square_q, square_k, middle, mean) = block.xp, usual
    assert block.query is not None and block.keys.vectors is not None
    dots = block.products
    if dots is None:
        dots = block.query @ block.keys.vectors.swapaxes(1, 2)
    away = dots * -2
    away += square_q[:, :, None]
    away += square_k[:, None]
    xp.sqrt(xp.clip(away, 0, None, out=away), out=away)
    away -= mean[:, None, None]
    a, b = block.hide(dots - middle[:, None, None]), block.hide(away)
    return a.sum(2), b.sum(2), inner(a, a), inner(b, b), inner(a, b)


MEASURE = Measure(
    "distance-dot",
    "distance–dot correlation",
    "Pearson correlation of |q − k| and q·k over the pairs seen",
    "Yeh et al. 2023, AttentionViz",
    "zero",
    DistanceDot(),
    needs="vectors",
    bounds=(-1.0, 1.0),
)
