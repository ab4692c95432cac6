"""How much does a head look one token back? The first token is left out: nothing is before it."""

from attention_atlas.measure.diagonal import diagonal
from attention_atlas.measure.look import Floats, Look
from attention_atlas.measure.measure import SHARE, Measure


def previous_token(look: Look) -> Floats:
    return diagonal(look, -1)


MEASURE = Measure(
    "previous",
    "one back",
    "mean over rows with n ≥ 2 that see key i − 1 of w on it",
    "Voita et al. 2019, positional heads",
    "shuffled",
    previous_token,
    square=True,
    bounds=SHARE,
)
