"""How parallel, radioactive, homogeneous, X-type and compound is a head on one input?

Five numbers from 0 to 1 for each head. All are shares of attention beyond what an even row would
give, pooled over rows: for keys S of which a row of n visible keys holds the mass m,

    excess = Σ rows (m − |S| / n)  /  Σ rows (1 − |S| / n)

so an even head has 0 and a head that looks only at S has 1, whatever the length; an early causal
row, which sees few keys, counts little, and a row that sees only S does not count.

    parallel     best excess of one offset i − j, or of three adjacent ones
    radioactive  best excess of one end: the first token, the last, or the delimiters;
    X-type       excess of both ends together; split between these two by how alike the ends are
    homogeneous  how far the distance from even (total variation) is below that of a random row:
                 0 at random, 1 where every row is even
    compound     how far above it: 0 at random, 1 where every row looks at one key;
                 × (1 − the largest of parallel, radioactive and X-type)

The last token that a causal row sees is itself. All is computed from sums over rows (`shape_sums`),
so that an input can be read in blocks of rows.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from attention_atlas.measure.arrays import Floats
from attention_atlas.measure.shape_sums import (
    DELIMITERS,
    FIRST,
    LAST,
    LAST_SEEN,
    ShapeSums,
    offsets,
    wide,
)

NAMES = ("parallel", "radioactive", "homogeneous", "X-type", "compound")
ENDS = ("first token", "last token", "delimiters")
WORTH_WIDTH = 0.05  # what three offsets must add to one to be preferred
UNLIKE, ALIKE = 0.3, 0.7  # weaker end / stronger end: below, one end counts; above, both do


class Shapes(NamedTuple):
    """The shapes of H heads on one input."""

    evidence: Floats  # (H, 5), in the order of NAMES
    offset: npt.NDArray[np.intp]  # (H,) i − j of the best diagonal
    end: npt.NDArray[np.intp]  # (H,) index into ENDS of the strongest end
    mass: Floats  # (H,) the share of attention outside keys set aside


def shapes_of(sums: ShapeSums) -> Shapes:
    """Compute the shapes of an input from its sums."""
    parallel, offset = _best_diagonal(sums, int(sums.pairs // sums.rows))
    all_see_last = sums.sees_last == sums.rows
    ends = [
        _excess(sums, [FIRST]),
        _excess(sums, [LAST]) * all_see_last,
        _excess(sums, [DELIMITERS]),
    ]
    strength = np.maximum(np.stack(ends, 1), 0)  # (H, 3)
    both, alike = _both_ends(sums, strength[:, 0])
    x_type = both * alike
    radioactive = np.maximum(strength.max(1) * (1 - alike), 0)

    uneven = np.clip(_over(sums.uneven, sums.farthest), 0, 1)
    # A row of n keys split evenly at random is (1 − 1/n)ⁿ away from even, about 1/e.
    by_chance = _over(sums.by_chance, sums.farthest)
    homogeneous = np.clip(_over(by_chance - uneven, by_chance), 0, 1)
    focus = np.clip(_over(uneven - by_chance, 1 - by_chance), 0, 1)
    compound = focus * (1 - np.maximum.reduce([parallel, radioactive, x_type]))
    evidence = np.stack([parallel, radioactive, homogeneous, x_type, compound], 1)
    return Shapes(evidence, offset, strength.argmax(1), sums.left / sums.rows)


def _excess(sums: ShapeSums, targets: list[int]) -> Floats:
    """Compute the excess of targets that have no key in common; returns (H,)."""
    held, expected = sums.held[targets].sum(0), sums.expected[targets].sum(0)
    return _over(held - expected, sums.mass - expected)


def _over(part: Floats, whole: Floats) -> Floats:
    return np.where(whole > 1e-9, part / np.maximum(whole, 1e-9), 0.0)


def _both_ends(sums: ShapeSums, start: Floats) -> tuple[Floats, Floats]:
    """Compute the excess of the first token and another end, and how alike they are; (H,) each."""
    last = LAST if sums.keeps_last == sums.rows else LAST_SEEN
    best, alike = np.zeros(len(start)), np.zeros(len(start))
    for other in (last, DELIMITERS):
        both = np.maximum(_excess(sums, [FIRST, other]), 0)
        end = np.maximum(_excess(sums, [other]), 0)
        ratio = _over(np.minimum(start, end), np.maximum(start, end))
        closeness = np.clip((ratio - UNLIKE) / (ALIKE - UNLIKE), 0, 1)
        better = both * closeness > best * alike
        best, alike = np.where(better, both, best), np.where(better, closeness, alike)
    return best, alike


def _best_diagonal(sums: ShapeSums, keys: int) -> tuple[Floats, npt.NDArray[np.intp]]:
    """Find the best diagonal, one or three wide; returns its excess and offset i − j, (H,) each."""
    reach = offsets(keys)
    best, offset = np.zeros(len(sums.mass)), np.zeros(len(sums.mass), np.intp)
    widths = {1: (sums.follow_one, sums.see_one), 3: (sums.follow_three, sums.see_three)}
    for width in (1, 3) if keys >= 12 else (1,):
        follow, see = widths[width]
        expected = wide(sums.even_offset, width)
        excess = _over(wide(sums.on_offset, width) - expected, follow - expected)
        excess = np.where(see * 2 >= sums.rows, excess, 0)
        middle = reach[width // 2 : len(reach) - width // 2]
        largest = excess.max(1)
        better = largest > best + (WORTH_WIDTH if width > 1 else 0)
        offset = np.where(better, middle[excess.argmax(1)], offset)
        best = np.where(better, largest, best)
    return best, offset
