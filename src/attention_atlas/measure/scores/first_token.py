"""How much does a head rest on the first token?"""

from attention_atlas.measure.look import Floats, Look, row_mean
from attention_atlas.measure.measure import SHARE, Measure


def first_token(look: Look) -> Floats:
    return row_mean(look.weights[:, :, 0], look.choosing & look.seen[:, 0])


MEASURE = Measure(
    "first-token",
    "on first token",
    "mean over rows with n ≥ 2 of w on the first token",
    "Vig & Belinkov 2019; Xiao et al. 2023, attention sinks",
    "shuffled",
    first_token,
    bounds=SHARE,
)
