"""What do the first weights of a head add up to over many inputs?

Inputs of the same lengths that see alike are computed together, some at a time.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from attention_atlas.names.head import Head
from attention_atlas.store.reader import StoredAtlas
from attention_atlas.store.rows import LARGEST, StoredLayer


def sum_of_first_rows(
    atlas: StoredAtlas, inputs: Sequence[int], head: Head, most: int
) -> npt.NDArray[np.float64]:
    """Return the sum (most, most) over inputs of a head's first rows and columns."""
    total = np.zeros((most, most))
    for stored, own in atlas.layers_of(inputs, head):
        for together in _groups(stored, own, most):
            n, m = (min(size, most) for size in stored.size(together[0]))
            if len(together) == 1:
                of_input = stored.weights(together[0], np.array([head.head]), np.arange(n))
            else:
                of_input = stored.alike_weights(together, head.head, n)
            total[:n, :m] += of_input[:, :, :m].sum(0, dtype=np.float64)
    return total


def _groups(stored: StoredLayer, inputs: list[int], rows: int) -> Iterator[list[int]]:
    """Yield inputs that can be computed together and fit into memory together."""
    groups: dict[object, list[int]] = {}
    for number in inputs:
        alike = stored.alike(number)
        groups.setdefault(number if alike is None else alike, []).append(number)
    for group in groups.values():
        n, m = stored.size(group[0])
        step = max(1, LARGEST // max(1, max(min(n, rows), stored.layer.width) * m))
        for start in range(0, len(group), step):
            yield group[start : start + step]
