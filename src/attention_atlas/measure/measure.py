"""What is a measure? A function of a look, with the words that go with its number."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from attention_atlas.measure.look import Floats, Look

# What the same number would be if the head did nothing in particular:
# shuffled  the weights of each row dealt out at random among the keys it may see
# even      every row even over the keys it may see, for numbers that do not care which key
# zero      nought, for differences and correlations
Chance = Literal["shuffled", "even", "zero"]


@dataclass(frozen=True)
class Measure:
    name: str
    title: str  # a few words for a column or an axis
    formula: str  # one line; w: weights, i: row, j: key, n: keys that row i may see
    source: str  # where it comes from
    chance: Chance
    of: Callable[[Look], Floats]  # (H,), one number a head for one input; NaN: no answer
    # weights alone; vectors or values kept; tokens that are patches; patches and words together
    needs: Literal["weights", "vectors", "values", "patches", "mixed"] = "weights"
    square: bool = False  # only where rows and keys are the same tokens
