"""How much do words look at a picture?"""

from attention_atlas.measure.look import Floats, Look, nothing, share_of
from attention_atlas.measure.measure import Measure


def text_to_image(look: Look) -> Floats:
    if look.place is None:
        return nothing(look)
    words = ~look.patches & ~look.special
    return share_of(look, words[:, None] & look.patches[None])


MEASURE = Measure(
    "text-to-image",
    "words on the picture",
    "mean over words that see some of Σ w on the tokens of pictures",
    "Aflalo et al. 2022, VL-InterpreT",
    "shuffled",
    text_to_image,
    needs="mixed",
    square=True,
)
