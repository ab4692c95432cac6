"""Which key of a patch gets an arrow? One rule for pictures, tables and counts.

The strongest key of each patch, if its weight is at least 0.05: an arrow to another patch, a circle
where it is the patch itself, a square where it is a class or register token (Yeh et al. 2023,
AttentionViz). Rows that are no patches, and keys that are neither, have none.
"""

import numpy as np
import numpy.typing as npt

from attention_atlas.measure.arrays import Bools, Floats

FAINTEST = 0.05
NONE, ARROW, CIRCLE, SQUARE = range(4)


def marks(
    weights: Floats, query_patch: Bools, key_patch: Bools, key_special: Bools, same: bool
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint8]]:
    """Find the strongest key of each row of (N, M) weights; returns it and its mark, (N,) each.

    `same`: rows and keys are the same tokens.
    """
    strongest = weights.argmax(1)
    rows = np.arange(len(weights))
    itself = (strongest == rows) if same else np.zeros(len(weights), bool)
    kind = np.select(
        [itself, key_special[strongest], key_patch[strongest]], [CIRCLE, SQUARE, ARROW], NONE
    )
    drawn = query_patch & (weights[rows, strongest] >= FAINTEST)
    return strongest.astype(np.uint32), np.where(drawn, kind, NONE).astype(np.uint8)
