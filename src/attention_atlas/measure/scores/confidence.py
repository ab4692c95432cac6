"""How sure is a head of one key a row?"""

from attention_atlas.measure.look import Floats, Look, row_mean
from attention_atlas.measure.measure import SHARE, Measure


def confidence(look: Look) -> Floats:
    return row_mean(look.weights.max(2), look.choosing)


MEASURE = Measure(
    "confidence",
    "confidence",
    "mean over rows with n ≥ 2 of maxⱼ w",
    "Voita et al. 2019, Analyzing Multi-Head Self-Attention",
    "even",
    confidence,
    bounds=SHARE,
)
