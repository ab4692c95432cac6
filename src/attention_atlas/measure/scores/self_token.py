"""How much does each token look at itself?"""

from attention_atlas.measure.diagonal import diagonal
from attention_atlas.measure.look import Floats, Look
from attention_atlas.measure.measure import SHARE, Measure


def self_token(look: Look) -> Floats:
    return diagonal(look, 0)


MEASURE = Measure(
    "self",
    "on itself",
    "mean over rows with n ≥ 2 that see key i of w on it",
    "Kovaleva et al. 2019, diagonal heads",
    "shuffled",
    self_token,
    square=True,
    bounds=SHARE,
)
