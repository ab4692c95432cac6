"""How much does a patch look along its own column?"""

from attention_atlas.measure.look import Floats, Look, nothing, share_of
from attention_atlas.measure.measure import Measure


def patch_column(look: Look) -> Floats:
    if look.place is None:
        return nothing(look)
    return share_of(look, look.beside & (look.steps[:, :, 1] == 0) & (look.steps[:, :, 0] != 0))


MEASURE = Measure(
    "patch-column",
    "along the column",
    "mean over patches of Σ w on the other patches of the same column",
    "Yeh et al. 2023, AttentionViz",
    "shuffled",
    patch_column,
    needs="patches",
    square=True,
)
