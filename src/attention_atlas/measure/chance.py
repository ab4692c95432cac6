"""What would a head that does nothing in particular have in a block?"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from attention_atlas.measure.row_block import RowBlock


@dataclass(frozen=True)
class ChanceBlock:
    """A block with its weights made even, or shuffled; each is made once for all measures."""

    block: RowBlock
    dice: np.random.Generator

    @cached_property
    def even(self) -> RowBlock:
        """Two heads: one even over the keys it may see, one of zeros."""
        return self.block.even()

    @cached_property
    def some_shuffled(self) -> RowBlock:
        """Some of the rows, the weights of each shuffled among the keys it may see."""
        return self.block.thinned().shuffled(self.dice)
