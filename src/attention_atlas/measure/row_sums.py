"""Which sums over keys do the rows of a block need, all at once?

Where a kernel computes them in one reading (`fused_sums`), measures take them from here; elsewhere
each computes its own.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

from attention_atlas.measure.arrays import inner

if TYPE_CHECKING:
    from attention_atlas.measure.row_block import RowBlock


class RowSums(NamedTuple):
    """Sums over the keys of each row, (H, R) each. w: weight, d: distance, i to j."""

    mass: Any  # w
    largest: Any  # the largest w
    entropy: Any  # −w log w
    distance: Any  # w d
    square_distance: Any  # w d²
    left: Any  # w outside keys set aside: the first and special ones
    over: Any  # what w has above an even row
    over_aside: Any  # the same outside keys set aside
    grown: Any  # w where scaling by value norms makes it smaller, else w scaled
    dot: Any  # q·k less a usual number, over keys seen
    away: Any  # |q − k| less a usual number, over keys seen
    dot_dot: Any  # their products
    away_away: Any
    dot_away: Any


FIELDS = RowSums._fields


def set_aside_keys(block: "RowBlock") -> Any:
    """Tell which keys of a block are set aside for its shape: the first, and special ones; (M,)."""
    return block.keys.special | (block.columns == 0)


def even_shares(block: "RowBlock") -> tuple[Any, Any, Any]:
    """Get keys set aside (M,), and the weight of an even row on each key, with and without (R,)."""
    xp, aside = block.xp, set_aside_keys(block)
    counts = block.visible, (block.seen & ~aside).sum(1)
    even = [xp.asarray(count > 0, dtype=xp.float64) / xp.clip(count, 1, None) for count in counts]
    return aside, even[0], even[1]


def usual_numbers(block: "RowBlock") -> tuple[Any, Any, Any, Any]:
    """Get |q|² (H, R), |k|² (H, M), and numbers near the means of q·k and |q − k|, (H,) each.

    About a number near the mean, float32 loses little; the rest is done in float64.
    """
    xp = block.xp
    lengths = block.tokens.vector_lengths[:, : block.seen.shape[1]]
    squares = inner(block.query, block.query), lengths * lengths
    assert block.query is not None
    middle = inner(block.query.mean(1), block.tokens.mean_vector)
    usual = xp.sqrt(xp.clip(squares[0].mean(1) + squares[1].mean(1) - 2 * middle, 0, None))
    return *squares, middle, usual
