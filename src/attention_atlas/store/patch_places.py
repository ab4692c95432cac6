"""Where in a picture is each token? Reads the tables of older atlases too."""

import numpy as np
import numpy.typing as npt
import pandas as pd

SIDES = ("left", "top", "right", "bottom")
Images = npt.NDArray[np.int16]
Boxes = npt.NDArray[np.float32]


def places(tokens: pd.DataFrame) -> tuple[Images, Boxes] | None:
    """Return each token's picture (N,), -1: none, and box (N, 4); None if no token has a place."""
    if "image" not in tokens or not len(tokens):
        return None
    image = tokens["image"].fillna(-1).to_numpy(np.int16)
    box = tokens[list(SIDES)].to_numpy(np.float32)
    return (image, box) if (image >= 0).any() else None


def seated(tokens: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Tell whether each token has a box, bool (N,)."""
    images_and_boxes = places(tokens)
    if images_and_boxes is None:
        return np.zeros(len(tokens), bool)
    return np.asarray(~np.isnan(images_and_boxes[1]).any(axis=1))
