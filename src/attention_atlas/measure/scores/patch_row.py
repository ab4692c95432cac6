"""How much does a patch look along its own row?"""

from attention_atlas.measure.look import Floats, Look, nothing, share_of
from attention_atlas.measure.measure import Measure


def patch_row(look: Look) -> Floats:
    if look.place is None:
        return nothing(look)
    return share_of(look, look.beside & (look.steps[:, :, 0] == 0) & (look.steps[:, :, 1] != 0))


MEASURE = Measure(
    "patch-row",
    "along the row",
    "mean over patches of Σ w on the other patches of the same row",
    "Yeh et al. 2023, AttentionViz",
    "shuffled",
    patch_row,
    needs="patches",
    square=True,
)
