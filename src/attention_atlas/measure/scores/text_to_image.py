"""How much do words look at a picture?"""

from attention_atlas.measure.accumulate import RowMean
from attention_atlas.measure.definition import Measure
from attention_atlas.measure.row_block import Floats, RowBlock


def text_to_image(block: RowBlock) -> Floats:
    return block.share(block.keys.words[block.rows, None] & block.keys.patches)


MEASURE = Measure(
    "text-to-image",
    "words on the picture",
    "mean over words that see some of Σ w on the tokens of pictures",
    "Aflalo et al. 2022, VL-InterpreT",
    "shuffled",
    RowMean(text_to_image),
    needs="mixed",
    square=True,
)
