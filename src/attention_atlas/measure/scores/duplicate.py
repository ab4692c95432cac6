"""How much does a token look at earlier copies of itself?"""

from typing import Any

from attention_atlas.measure.accumulate import RowMean
from attention_atlas.measure.definition import SHARE, Measure
from attention_atlas.measure.row_block import RowBlock


def duplicate(block: RowBlock) -> Any:
    return block.share(block.earlier_copies)


MEASURE = Measure(
    "duplicate",
    "on earlier copies",
    "mean over rows whose token came before of Σ w on its earlier copies",
    "Wang et al. 2022, Interpretability in the Wild",
    "shuffled",
    RowMean(duplicate, linear=True),
    square=True,
    bounds=SHARE,
)
