"""How do weights become the cells of coarser levels?

A cell of the next level is the largest, or the sum, of 2 × 2 cells. Where a side is odd the missing
cells are zero, which changes neither.
"""

from collections.abc import Iterator

import numpy as np

from attention_atlas.store.rows import Float32

# A mean weight whose square root rounds to 0 of 255 steps has no colour.
FAINTEST_CELL = (0.5 / 255) ** 2


def halved(cells: Float32, how: np.ufunc) -> Float32:
    """Return the cells of the next level, by np.maximum or np.add."""
    height, width = cells.shape
    if height % 2 or width % 2:
        cells = np.pad(cells, ((0, height % 2), (0, width % 2)))
    rows = how(cells[0::2], cells[1::2])
    return np.asarray(how(rows[:, 0::2], rows[:, 1::2]))


def levels(weights: Float32, last: int) -> Iterator[tuple[Float32, Float32]]:
    """Yield strongest and mass of the cells of level 0, 1, … last."""
    strongest = mass = weights
    yield strongest, mass
    for _ in range(last):
        strongest, mass = halved(strongest, np.maximum), halved(mass, np.add)
        yield strongest, mass


def pooled(weights: Float32, level: int) -> tuple[Float32, Float32]:
    """Return strongest and mass of the cells of one level."""
    *_, cells = levels(weights, level)
    return cells


def faint_mass(mass: Float32, level: int) -> float:
    """Return the mass of the cells whose mean weight is below FAINTEST_CELL."""
    faint = (mass < np.float32(FAINTEST_CELL * 4**level)).astype(np.float32)
    # A product with zeros and ones is three times as fast as a sum over chosen cells.
    return float(np.einsum("ij,ij->i", mass, faint).sum(dtype=np.float64))
