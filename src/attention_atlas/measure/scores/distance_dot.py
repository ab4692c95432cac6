"""Does a query lie near the keys it looks at? −1 is perfect: distance falls as q·k grows."""

import numpy as np

from attention_atlas.measure.accumulate import Accumulator, State
from attention_atlas.measure.definition import Measure
from attention_atlas.measure.row_block import Floats, RowBlock


class DistanceDot(Accumulator):
    """The number of pairs, both means, and the squares and products about the means."""

    def state(self, block: RowBlock) -> State:
        assert block.query is not None and block.keys.vectors is not None
        dots = np.matmul(block.query, block.keys.vectors.swapaxes(1, 2))
        squares = np.square(block.query).sum(2), np.square(block.keys.vectors).sum(2)
        away = np.sqrt(np.maximum(squares[0][:, :, None] + squares[1][:, None] - 2 * dots, 0))
        a, b = (pairs[:, block.seen].astype(np.float64) for pairs in (dots, away))  # (H, pairs)
        count = np.array(a.shape[1], np.float64)
        means = [pairs.sum(1) / np.maximum(count, 1) for pairs in (a, b)]
        a, b = a - means[0][:, None], b - means[1][:, None]
        return count, *means, (a * a).sum(1), (b * b).sum(1), (a * b).sum(1)

    def join(self, left: State, right: State) -> State:
        """Join the states of two blocks, as exactly as from all pairs (Chan et al. 1979)."""
        count = left[0] + right[0]
        a, b = (right[side] - left[side] for side in (1, 2))
        part, both = right[0] / np.maximum(count, 1), left[0] * right[0] / np.maximum(count, 1)
        apart = a * a, b * b, a * b
        moments = (x + y + both * z for x, y, z in zip(left[3:], right[3:], apart, strict=True))
        return count, left[1] + part * a, left[2] + part * b, *moments

    def value(self, state: State) -> Floats:
        count, _, _, aa, bb, ab = state
        size = np.sqrt(aa * bb)
        return np.where((count > 2) & (size > 1e-12), ab / np.maximum(size, 1e-12), np.nan)


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
