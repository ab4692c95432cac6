"""How do places become the whole numbers of a map's file?"""

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from attention_atlas.store.maps import LAST, Float32


def packed_places(places: Tensor) -> tuple[npt.NDArray[np.uint16], Float32]:
    """Return places (heads, points, dims) as uint16 across the box of each head, and the boxes."""
    low, high = places.amin(1, keepdim=True), places.amax(1, keepdim=True)
    wide = (high - low).clamp_min(torch.finfo(torch.float32).tiny)
    steps = ((places - low) / wide * LAST).round_().int()
    box: Float32 = torch.cat([low, high], 1).cpu().numpy()  # (heads, 2, dims)
    return steps.cpu().numpy().astype(np.uint16), box
