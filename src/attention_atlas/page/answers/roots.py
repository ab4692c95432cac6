"""How do numbers travel in two bytes? As square roots in steps of the largest of them.

Roots keep small numbers precise, which may be all that is left when tokens are hidden. A number w
of a largest one p is off by half a step of its root: by √(w·p) / 65535, with signs by twice that.
"""

import numpy as np
import numpy.typing as npt

from attention_atlas.page.wire.constants import SIGNED_UNIT, UNIT
from attention_atlas.store.rows import Float32

_SIGN = np.uint32(1 << 31)  # the bit of a float32 that is its sign
Roots = npt.NDArray[np.uint16] | npt.NDArray[np.int16]


def to_roots(numbers: Float32, largest: Float32 | float, signed: bool = False) -> Roots:
    """Return square roots in 65535ths of the largest, or in 32767ths with the numbers' signs.

    largest  of all numbers, or an array of the same dimensions: of each row (R, 1)
    """
    sizes = np.abs(numbers)
    np.sqrt(sizes, out=sizes)
    unit = SIGNED_UNIT if signed else UNIT
    sizes *= (unit / np.sqrt(np.where(np.greater(largest, 0), largest, 1))).astype(np.float32)
    np.rint(sizes, out=sizes)
    if not signed:
        return sizes.astype(np.uint16)
    bits = sizes.view(np.uint32)
    bits |= np.ascontiguousarray(numbers, np.float32).view(np.uint32) & _SIGN  # 3 × np.copysign
    return sizes.astype(np.int16)


def largest_sizes(rows: Float32) -> Float32:
    """Return the largest size in each row (R, M): (R,)."""
    largest: Float32 = np.abs(rows).max(axis=1, initial=0)
    return largest
