"""Where in a picture does each token lie? Read from a table of tokens, old ones too."""

import numpy as np
import numpy.typing as npt
import pandas as pd

SIDES = ("left", "top", "right", "bottom")
Images = npt.NDArray[np.int16]
Boxes = npt.NDArray[np.float32]


def places(tokens: pd.DataFrame) -> tuple[Images, Boxes] | None:
    """(N,) which picture, -1: none, and (N, 4) where in it; None where no token has a place."""
    if "image" not in tokens or not len(tokens):
        return None
    image = tokens["image"].fillna(-1).to_numpy(np.int16)
    box = tokens[list(SIDES)].to_numpy(np.float32)
    return (image, box) if (image >= 0).any() else None


def seated(tokens: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """(N,): whether each token has a box."""
    found = places(tokens)
    if found is None:
        return np.zeros(len(tokens), bool)
    return np.asarray(~np.isnan(found[1]).any(axis=1))
