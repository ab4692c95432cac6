"""Does another head write the same? The nearest head by what is added to the stream.

The cosine of two heads' outputs over all tokens of an input, with their full width: 1 is the same
up to a factor, 0 has nothing in common, −1 takes away what the other adds. Heads that look at
different tokens may still write alike, and heads that look alike may write something else.
"""

import numpy as np

from attention_atlas.measure.arrays import Floats
from attention_atlas.measure.definition import Bounds

NAME, TITLE = "output-alike", "nearest head by output"
FORMULA = "largest |cos| of the head's output (tokens × width) with that of another head"
SOURCE = "cosine of outputs, as in Kornblith et al. 2019 without centring"
BOUNDS: Bounds = (0.0, 1.0)


def cosines(outputs: Floats) -> Floats:
    """Return the cosine of every two heads' outputs (H, N, width), (H, H); NaN for none at all."""
    flat = outputs.reshape(len(outputs), -1).astype(np.float64)
    sizes = np.linalg.norm(flat, axis=1)
    unit = flat / np.where(sizes > 0, sizes, np.nan)[:, None]
    return np.asarray(np.clip(unit @ unit.T, -1, 1))


def nearest(cosine: Floats) -> Floats:
    """Return how like the most like other head each head is, (H,)."""
    size = np.abs(cosine)
    np.fill_diagonal(size, -1.0)
    best = np.where(np.isnan(size), -1.0, size).max(1)
    return np.where(best >= 0, best, np.nan)
