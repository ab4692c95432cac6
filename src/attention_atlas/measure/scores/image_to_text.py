"""How much does a picture look at words?"""

from typing import Any

from attention_atlas.measure.accumulate import RowMean
from attention_atlas.measure.definition import Measure
from attention_atlas.measure.row_block import RowBlock


def image_to_text(block: RowBlock) -> Any:
    return block.share(block.patch_rows[:, None] & block.keys.words)


MEASURE = Measure(
    "image-to-text",
    "picture on the words",
    "mean over tokens of pictures that see some of Σ w on words",
    "Aflalo et al. 2022, VL-InterpreT",
    "shuffled",
    RowMean(image_to_text, linear=True),
    needs="mixed",
    square=True,
)
