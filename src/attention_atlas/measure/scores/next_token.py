"""How much does a head look one token ahead? Causal heads cannot, and give no answer."""

from attention_atlas.measure.diagonal import diagonal
from attention_atlas.measure.look import Floats, Look
from attention_atlas.measure.measure import SHARE, Measure


def next_token(look: Look) -> Floats:
    return diagonal(look, 1)


MEASURE = Measure(
    "next",
    "one ahead",
    "mean over rows with n ≥ 2 that see key i + 1 of w on it",
    "Voita et al. 2019, positional heads",
    "shuffled",
    next_token,
    square=True,
    bounds=SHARE,
)
