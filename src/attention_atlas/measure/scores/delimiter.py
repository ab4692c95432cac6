"""How much does a head look at delimiters: special tokens after the first, and punctuation?"""

from attention_atlas.measure.look import Floats, Look, nothing, row_mean
from attention_atlas.measure.measure import SHARE, Measure


def delimiter(look: Look) -> Floats:
    marks = look.special | look.punctuation
    marks[0] = False
    if not marks.any():
        return nothing(look)
    there = look.choosing & (look.seen & marks).any(1)
    return row_mean(look.weights[:, :, marks].sum(2), there)


MEASURE = Measure(
    "delimiter",
    "on delimiters",
    "mean over rows that see one of Σ w on special tokens after the first and on punctuation",
    "Clark et al. 2019, What Does BERT Look At?",
    "shuffled",
    delimiter,
    bounds=SHARE,
)
