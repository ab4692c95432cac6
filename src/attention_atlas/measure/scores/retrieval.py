"""Does a head fetch the needle from the haystack?

A needle of random tokens after a cue of two is hidden in text of the atlas. At the end the cue
comes again and the needle is written out; a head retrieves a token if, where it must be predicted,
the head looks most at the very token of the needle. Needles and places are drawn anew.
"""

import numpy as np
import numpy.typing as npt

from attention_atlas.measure.arrays import Floats
from attention_atlas.measure.definition import SHARE

NAME, TITLE = "retrieval", "retrieval of a needle"
FORMULA = "share of needle tokens at whose prediction the strongest key is that token in the text"
SOURCE = "Wu et al. 2024, Retrieval Head Mechanistically Explains Long-Context Factuality"
BOUNDS = SHARE


def retrieved(weights: Floats, wanted: npt.NDArray[np.int64]) -> Floats:
    """Return the share of rows (H, R, M) whose strongest key is the wanted one (R,), (H,)."""
    return np.asarray((weights.argmax(2) == wanted).mean(1))


def by_chance(rows: npt.NDArray[np.int64]) -> float:
    """Return the share for a head whose strongest key is any of those that a row may see."""
    return float((1 / (rows + 1)).mean())
