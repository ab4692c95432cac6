"""How far does a head look on a picture, in patches?"""

import numpy as np

from attention_atlas.measure.look import Floats, Look, nothing
from attention_atlas.measure.measure import Measure


def patch_distance(look: Look) -> Floats:
    if look.place is None:
        return nothing(look)
    beside = look.beside & look.seen
    away = np.where(beside, np.sqrt(np.square(look.steps).sum(2)), 0)
    there = np.where(beside, look.weights, 0)
    mass = there.sum(2)
    mean = (there * away).sum(2) / np.maximum(mass, 1e-9)
    some = (beside.sum(1) > 1) & (mass > 1e-6)  # (H, N)
    counts = some.sum(1)
    total = np.where(some, mean, 0).sum(1)
    return np.where(counts > 0, total / np.maximum(counts, 1), np.nan)


MEASURE = Measure(
    "patch-distance",
    "distance in patches",
    "mean over patches of Σ w · √(Δrow² + Δcolumn²) / Σ w, over the patches of the picture",
    "Dosovitskiy et al. 2021, An Image Is Worth 16×16 Words",
    "shuffled",
    patch_distance,
    needs="patches",
    square=True,
)
