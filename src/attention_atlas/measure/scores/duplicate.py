"""How much does a token look at earlier copies of itself?"""

from attention_atlas.measure.copies import copies
from attention_atlas.measure.look import Floats, Look
from attention_atlas.measure.measure import SHARE, Measure


def duplicate(look: Look) -> Floats:
    return copies(look, shift=0)


MEASURE = Measure(
    "duplicate",
    "on earlier copies",
    "mean over rows whose token came before of Σ w on its earlier copies",
    "Wang et al. 2022, Interpretability in the Wild",
    "shuffled",
    duplicate,
    square=True,
    bounds=SHARE,
)
