"""How much does a token look at what followed its earlier copies?"""

from typing import Any

from attention_atlas.measure.accumulate import RowMean
from attention_atlas.measure.definition import SHARE, Measure
from attention_atlas.measure.row_block import RowBlock


def induction(block: RowBlock) -> Any:
    after = block.xp.zeros_like(block.seen)
    after[:, 1:] = block.earlier_copies[:, :-1]
    return block.share(after & (block.columns < block.rows[:, None]))  # must be earlier too


MEASURE = Measure(
    "induction",
    "after earlier copies",
    "mean over rows whose token came before of Σ w on the tokens that followed its earlier copies",
    "Olsson et al. 2022, In-context Learning and Induction Heads",
    "shuffled",
    RowMean(induction, linear=True),
    square=True,
    bounds=SHARE,
)
