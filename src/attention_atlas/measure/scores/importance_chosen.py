"""What is the largest weight of a head in rows that have a choice?

A causal model's first row sees one key, so its weight is 1 whatever the head does.
"""

import numpy as np

from attention_atlas.measure.look import Floats, Look, nothing
from attention_atlas.measure.measure import SHARE, Measure


def importance_chosen(look: Look) -> Floats:
    if not look.choosing.any():
        return nothing(look)
    return np.asarray(look.weights[:, look.choosing].max((1, 2)))


MEASURE = Measure(
    "importance-chosen",
    "importance, rows with a choice",
    "max over rows with n ≥ 2 and keys of w",
    "ours: the study's importance without rows that see one key",
    "even",
    importance_chosen,
    bounds=SHARE,
)
