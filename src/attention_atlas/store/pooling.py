"""How do weights become the cells of coarser levels?

A cell of the next level is the largest, or the sum, of 2 × 2 cells. Where a side is odd the missing
cells are zero, which changes neither. Numbers with signs (contributions) are pooled by their sizes:
the strongest is the one farthest from zero, with its sign, and the mass is the sum of sizes.
"""

from collections.abc import Callable, Iterator

import numpy as np

from attention_atlas.store.rows import Float32

# A mean weight whose square root rounds to 0 of 255 steps has no colour.
FAINTEST_CELL = (0.5 / 255) ** 2


def farther(one: Float32, other: Float32) -> Float32:
    """Return of every two numbers the one farther from zero, with its sign."""
    return np.where(np.abs(one) >= np.abs(other), one, other)


def stronger(signed: bool) -> Callable[[Float32, Float32], Float32]:
    """Return how the stronger of two cells is found."""
    return farther if signed else np.maximum


def halved(cells: Float32, how: Callable[[Float32, Float32], Float32]) -> Float32:
    """Return the cells of the next level, by `stronger` or np.add."""
    height, width = cells.shape
    if height % 2 or width % 2:
        cells = np.pad(cells, ((0, height % 2), (0, width % 2)))
    rows = how(cells[0::2], cells[1::2])
    return np.asarray(how(rows[:, 0::2], rows[:, 1::2]))


def levels(weights: Float32, last: int, signed: bool = False) -> Iterator[tuple[Float32, Float32]]:
    """Yield strongest and mass of the cells of level 0, 1, … last."""
    strongest, mass = weights, np.abs(weights) if signed else weights
    yield strongest, mass
    for _ in range(last):
        strongest, mass = halved(strongest, stronger(signed)), halved(mass, np.add)
        yield strongest, mass


def pooled(weights: Float32, level: int, signed: bool = False) -> tuple[Float32, Float32]:
    """Return strongest and mass of the cells of one level."""
    *_, cells = levels(weights, level, signed)
    return cells


def faint_mass(mass: Float32, level: int) -> float:
    """Return the mass of the cells whose mean weight is below FAINTEST_CELL."""
    faint = (mass < np.float32(FAINTEST_CELL * 4**level)).astype(np.float32)
    # A product with zeros and ones is three times as fast as a sum over chosen cells.
    return float(np.einsum("ij,ij->i", mass, faint).sum(dtype=np.float64))
