"""How much does a picture look at words?"""

from attention_atlas.measure.look import Floats, Look, nothing, share_of
from attention_atlas.measure.measure import Measure


def image_to_text(look: Look) -> Floats:
    if look.place is None:
        return nothing(look)
    words = ~look.patches & ~look.special
    return share_of(look, look.patches[:, None] & words[None])


MEASURE = Measure(
    "image-to-text",
    "picture on the words",
    "mean over tokens of pictures that see some of Σ w on words",
    "Aflalo et al. 2022, VL-InterpreT",
    "shuffled",
    image_to_text,
    needs="mixed",
    square=True,
)
