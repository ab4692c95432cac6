"""How much do words look at a picture?"""

from typing import Any

from attention_atlas.measure.accumulate import RowMean
from attention_atlas.measure.definition import Measure
from attention_atlas.measure.row_block import RowBlock


def text_to_image(block: RowBlock) -> Any:
    return block.share(block.tokens.words[block.rows, None] & block.keys.patches)


MEASURE = Measure(
    "text-to-image",
    "words on the picture",
    "mean over words that see some of Σ w on the tokens of pictures",
    "Aflalo et al. 2022, VL-InterpreT",
    "shuffled",
    RowMean(text_to_image, linear=True),
    needs="mixed",
    square=True,
)
