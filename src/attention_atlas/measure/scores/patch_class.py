"""How much do patches look at class and register tokens?"""

from attention_atlas.measure.look import Floats, Look, nothing, share_of
from attention_atlas.measure.measure import Measure


def patch_class(look: Look) -> Floats:
    if look.place is None:
        return nothing(look)
    return share_of(look, look.patches[:, None] & look.special[None])


MEASURE = Measure(
    "patch-class",
    "on class and register tokens",
    "mean over patches of Σ w on class and register tokens",
    "Darcet et al. 2024, Vision Transformers Need Registers",
    "shuffled",
    patch_class,
    needs="patches",
    square=True,
)
