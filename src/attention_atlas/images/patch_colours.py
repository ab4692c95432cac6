"""What colour is each patch of a picture? The mean of its pixels."""

from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from attention_atlas.images.upright import LUMA

Floats = npt.NDArray[np.float64]
_LARGEST = 1024  # pixels a side: a mean over a patch needs no more
_GREY = 0.02  # saturation below which a hue means nothing
NAMES = ("brightness", "hue", "saturation")


def swatches(picture: Image.Image, boxes: "npt.NDArray[np.floating[Any]]") -> Floats:
    """Get brightness 0 … 1, hue 0 … 360, saturation 0 … 1 of boxes: (N, 3), NaN where no box."""
    small = picture.convert("RGB")
    small.thumbnail((_LARGEST, _LARGEST))
    pixels = np.asarray(small, np.float64) / 255
    sums = np.pad(pixels.cumsum(0).cumsum(1), ((1, 0), (1, 0), (0, 0)))
    height, width = pixels.shape[:2]
    out = np.full((len(boxes), 3), np.nan)
    known = ~np.isnan(boxes).any(1)
    edges = np.clip(boxes[known], 0, 1) * [width, height, width, height]
    low = np.minimum(np.rint(edges[:, :2]).astype(int), [width - 1, height - 1])
    high = np.maximum(np.rint(edges[:, 2:]).astype(int), low + 1)
    (left, top), (right, bottom) = low.T, high.T
    total = sums[bottom, right] - sums[top, right] - sums[bottom, left] + sums[top, left]
    colour = total / ((right - left) * (bottom - top))[:, None]
    out[known] = np.column_stack([colour @ LUMA, *hue_and_saturation(colour)])
    return out


def hue_and_saturation(colour: Floats) -> tuple[Floats, Floats]:
    """Convert (N, 3) red, green, blue to hue and saturation of HSV; greys have no hue."""
    high, low = colour.max(1), colour.min(1)
    wide = high - low
    saturation = np.divide(wide, high, out=np.zeros_like(wide), where=high > 0)
    red, green, blue = colour.T
    safe = np.where(wide > 0, wide, 1)
    sixth = np.select(
        [high == red, high == green],
        [(green - blue) / safe % 6, (blue - red) / safe + 2],
        (red - green) / safe + 4,
    )
    return np.where(saturation < _GREY, np.nan, 60 * sixth), saturation
