"""How much does a patch look at itself?"""

import numpy as np

from attention_atlas.measure.look import Floats, Look, nothing, share_of
from attention_atlas.measure.measure import Measure


def patch_self(look: Look) -> Floats:
    if look.place is None:
        return nothing(look)
    return share_of(look, look.beside & np.eye(len(look.seen), dtype=bool))


MEASURE = Measure(
    "patch-self",
    "patch on itself",
    "mean over patches of w on the patch itself",
    "Yeh et al. 2023, AttentionViz",
    "shuffled",
    patch_self,
    needs="patches",
    square=True,
)
