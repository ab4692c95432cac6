"""What is a measure? A number that blocks of rows add up to, with its title, formula and source."""

from dataclasses import dataclass
from math import inf, isinf
from typing import Literal

from attention_atlas.measure.accumulate import Accumulator

# What the same number would be if the head did nothing in particular:
# shuffled  the weights of each row shuffled among the keys it may see
# even      every row even over the keys it may see, for numbers that do not depend on which key
# zero      0, for differences and correlations
Chance = Literal["shuffled", "even", "zero"]
Bounds = tuple[float, float]  # the least and the most that a score can be
ANY, AT_LEAST_0, SHARE = (-inf, inf), (0.0, inf), (0.0, 1.0)


@dataclass(frozen=True)
class Measure:
    """A score of heads."""

    name: str
    title: str  # a few words for a column or an axis
    formula: str  # one line; w: weights, i: row, j: key, n: keys that row i may see
    source: str  # where it comes from
    chance: Chance
    of: Accumulator  # gives (H,), one number a head for one input; NaN: no answer
    # weights alone; vectors or values kept; tokens that are patches; patches and words together
    needs: Literal["weights", "vectors", "values", "patches", "mixed"] = "weights"
    square: bool = False  # only where rows and keys are the same tokens
    bounds: Bounds = ANY


def range_words(bounds: Bounds) -> str:
    """Describe the bounds of a score in words."""
    low, high = bounds
    if isinf(low) and isinf(high):
        return "any number"
    if isinf(high):
        return f"{low:.3g} or more"
    return f"{low:.3g} to {high:.3g}".replace("-", "−")
