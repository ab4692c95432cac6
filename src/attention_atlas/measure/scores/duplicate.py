"""How much does a token look at earlier copies of itself?"""

from typing import Any

from attention_atlas.measure.accumulate import RowMean
from attention_atlas.measure.definition import SHARE, Measure
from attention_atlas.measure.row_block import RowBlock


def duplicate(block: RowBlock) -> Any:
    return block.share(earlier_copies(block))


def earlier_copies(block: RowBlock) -> Any:
    """Find earlier keys with the row's token id; returns (R, M). Special tokens have none."""
    tokens, keys = block.tokens, block.keys
    rows = block.rows[:, None]
    may_repeat = (tokens.ids >= 0) & ~tokens.special
    same = (tokens.ids[rows] == keys.ids) & ~keys.special
    return same & may_repeat[rows] & (block.columns < rows)


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
