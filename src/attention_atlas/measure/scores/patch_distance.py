"""How far does a head look on a picture, in patches?"""

import numpy as np

from attention_atlas.measure.accumulate import RowMean
from attention_atlas.measure.definition import Measure
from attention_atlas.measure.row_block import Floats, RowBlock


def patch_distance(block: RowBlock) -> Floats:
    beside = (block.beside & block.seen).astype(np.float32)
    away = np.sqrt(np.square(block.steps).sum(2)).astype(np.float32) * beside
    mass = np.einsum("hrm,rm->hr", block.weights, beside)
    mean = np.einsum("hrm,rm->hr", block.weights, away) / np.maximum(mass, 1e-9)
    return np.where((beside.sum(1) > 1) & (mass > 1e-6), mean, np.nan)


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
