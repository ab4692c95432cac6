"""Does a query lie near the keys it looks at? −1 is perfect: distance falls as q·k grows."""

from typing import Any

import numpy as np

from attention_atlas.measure.accumulate import Accumulator, State
from attention_atlas.measure.arrays import Floats, inner
from attention_atlas.measure.definition import Measure
from attention_atlas.measure.row_block import RowBlock


class DistanceDot(Accumulator):
    """The number of pairs, both means, and the squares and products about the means."""

    def state(self, block: RowBlock) -> State:
        xp = block.xp
        assert block.query is not None and block.keys.vectors is not None
        dots = block.products
        if dots is None:
            dots = block.query @ block.keys.vectors.swapaxes(1, 2)
        lengths = block.tokens.vector_lengths[:, : block.seen.shape[1]]
        squares = inner(block.query, block.query), lengths * lengths  # (H, R), (H, M)
        away = dots * -2
        away += squares[0][:, :, None]
        away += squares[1][:, None]
        xp.sqrt(xp.clip(away, 0, None, out=away), out=away)
        # About a number near the mean, float32 loses little; the rest is done in float64.
        middle = inner(block.query.mean(1), block.tokens.mean_vector)  # of q·k, (H,)
        usual = xp.sqrt(xp.clip(squares[0].mean(1) + squares[1].mean(1) - 2 * middle, 0, None))
        away -= usual[:, None, None]
        a, b = block.hide(dots - middle[:, None, None]), block.hide(away)
        count = xp.asarray(block.visible.sum(), dtype=xp.float64)
        pairs = count.clip(1, None)
        means = [_over_rows(xp, values.sum(2)) / pairs for values in (a, b)]
        moments = [
            _over_rows(xp, inner(values, others)) - pairs * mean * other
            for values, others, mean, other in (
                (a, a, means[0], means[0]), (b, b, means[1], means[1]), (a, b, *means),
            )
        ]  # fmt: skip
        return count, middle + means[0], usual + means[1], *moments

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


def _over_rows(xp: Any, values: Any) -> Any:
    return xp.sum(values, axis=1, dtype=xp.float64)


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
