"""How much does a token look at what followed its earlier copies?"""

from attention_atlas.measure.copies import copies
from attention_atlas.measure.look import Floats, Look
from attention_atlas.measure.measure import SHARE, Measure


def induction(look: Look) -> Floats:
    return copies(look, shift=1)


MEASURE = Measure(
    "induction",
    "after earlier copies",
    "mean over rows whose token came before of Σ w on the tokens that followed its earlier copies",
    "Olsson et al. 2022, In-context Learning and Induction Heads",
    "shuffled",
    induction,
    square=True,
    bounds=SHARE,
)
