"""How much does a patch look at the eight around it?"""

import numpy as np

from attention_atlas.measure.look import Floats, Look, nothing, share_of
from attention_atlas.measure.measure import Measure


def patch_neighbour(look: Look) -> Floats:
    if look.place is None:
        return nothing(look)
    return share_of(look, look.beside & (np.abs(look.steps).max(2) == 1))


MEASURE = Measure(
    "patch-neighbour",
    "on neighbour patches",
    "mean over patches of Σ w on the patches one step away, across corners too",
    "Yeh et al. 2023, AttentionViz",
    "shuffled",
    patch_neighbour,
    needs="patches",
    square=True,
)
