"""What are the coarse levels of a head? One pass over all its weights, a band of rows at a time.

A pass that is stopped keeps its finished bands, and the next call resumes it.
"""

import threading

import numpy as np
import numpy.typing as npt

from attention_atlas.store.cores import each
from attention_atlas.store.head_weights import ROWS, WIDE, HeadWeights, pieces
from attention_atlas.store.pooling import faint_mass, halved, levels, stronger
from attention_atlas.store.rows import Float32

Float64 = npt.NDArray[np.float64]


class CoarseLevels:
    """The levels `fine` to `top` of a head, and sums over the cells of every level."""

    def __init__(self, weights: HeadWeights, fine: int, top: int, signed: bool = False):
        self._weights, self._fine, self._top, self._signed = weights, fine, top, signed
        shape = -(-weights.n // 2**fine), -(-weights.m // 2**fine)
        self._cells = [(np.zeros(shape, np.float32), np.zeros(shape, np.float32))]
        self._left = list(range(-(-weights.n // ROWS)))[::-1]  # bands; causal ones grow downwards
        self._adding, self._running = threading.Lock(), threading.Lock()
        self.column_mass: Float64 = np.zeros(weights.m)
        self.strongest_sums: Float64 = np.zeros(top + 1)  # by level: Σ strongest
        self.faint_sums: Float64 = np.zeros(top + 1)  # by level: Σ mass of cells without a colour

    @property
    def bytes(self) -> int:
        """Get the size of all levels once they are there."""
        return 8 * self._cells[0][0].size * 4 // 3 + self.column_mass.nbytes

    @property
    def done(self) -> bool:
        return not self._left and len(self._cells) == self._top - self._fine + 1

    def level(self, level: int) -> tuple[Float32, Float32]:
        """Return strongest and mass of all cells of a coarse level, once all rows were read."""
        return self._cells[level - self._fine]

    def finish(self) -> None:
        """Read all rows that were not read yet."""
        with self._running:
            if self.done:
                return
            each(self._read, list(self._left))
            for level in range(self._fine, self._top + 1):
                strongest, mass = self._cells[-1]
                self.strongest_sums[level] = np.abs(strongest).sum(dtype=np.float64)
                self.faint_sums[level] = faint_mass(mass, level)
                if level < self._top:
                    coarser = halved(strongest, stronger(self._signed))
                    self._cells.append((coarser, halved(mass, np.add)))

    def _read(self, band: int) -> None:
        first, last = band * ROWS, min((band + 1) * ROWS, self._weights.n)
        rows = self._weights.band(np.arange(first, last))
        side, fine = 2**self._fine, self._fine
        strongest_sums, faint_sums = np.zeros(fine), np.zeros(fine)
        column_mass = np.zeros(self._weights.m)
        down = slice(first // side, -(-last // side))
        start = rows.reach.start - rows.reach.start % side
        for columns in pieces(range(start, rows.reach.stop), WIDE):
            weights = rows.piece(columns)
            sizes = np.abs(weights) if self._signed else weights
            column_mass[columns.start : columns.stop] = sizes.sum(axis=0)
            for level, (strongest, mass) in enumerate(levels(weights, fine, self._signed)):
                if level < fine:
                    faint_sums[level] += faint_mass(mass, level)
                if 0 < level < fine:
                    strongest_sums[level] += np.abs(strongest).sum()
            across = slice(columns.start // side, -(-columns.stop // side))
            self._cells[0][0][down, across], self._cells[0][1][down, across] = strongest, mass
        if fine:
            strongest_sums[0] = column_mass.sum()  # a cell of level 0 is its strongest weight
        with self._adding:
            self.column_mass += column_mass
            self.strongest_sums[:fine] += strongest_sums
            self.faint_sums[:fine] += faint_sums
            self._left.remove(band)
