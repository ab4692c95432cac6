"""How far does a head look on a picture, in patches?"""

from typing import Any

import numpy as np

from attention_atlas.measure.accumulate import RowMean
from attention_atlas.measure.definition import Measure
from attention_atlas.measure.row_block import RowBlock


def patch_distance(block: RowBlock) -> Any:
    xp = block.xp
    beside = block.beside & block.seen
    steps = xp.asarray(block.steps, dtype=block.weights.dtype)
    mass = block.total(beside)
    mean = block.total(xp.sqrt((steps * steps).sum(2)) * beside) / xp.clip(mass, 1e-9, None)
    return xp.where((beside.sum(1) > 1) & (mass > 1e-6), mean, np.nan)


MEASURE = Measure(
    "patch-distance",
    "distance in patches",
    "mean over patches of Σ w · √(Δrow² + Δcolumn²) / Σ w, over the patches of the picture",
    "Dosovitskiy et al. 2021, An Image Is Worth 16×16 Words",
    "shuffled",
    RowMean(patch_distance),
    needs="patches",
    square=True,
)
