"""What does one head do over a long input? Its N × M weights as a pyramid of tiles.

A cell of level l covers 2^l × 2^l weights and has the strongest of them and their sum, its mass; a
tile has 256 × 256 cells. Fine tiles are computed when they are asked for; the coarse levels come
from one pass over all weights. N × M weights are never in memory. An overview from every 16th row
is there at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from attention_atlas.names.errors import PickError
from attention_atlas.store.coarse_levels import CoarseLevels
from attention_atlas.store.cores import each
from attention_atlas.store.head_weights import WIDE, HeadWeights, pieces
from attention_atlas.store.pooling import farther, pooled
from attention_atlas.store.rows import Float32
from attention_atlas.store.sinks import sinks_of

TILE = 256  # cells of a tile's side
STEP = 16  # a sampled overview has every 16th row
FINE = 4  # coarse levels start here, or where a side has 2048 cells
_SIDE = 2048  # most cells a side of a level that is kept
_DIRECT = 2**25  # weights of a tile that is computed by itself, as long as no level is kept
_ROWS = 128  # of a sampled band

Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Tile:
    """256 × 256 cells of one level; those beyond the input are zero.

    Of numbers with signs, `strongest` has them and `mass` is the sum of sizes.
    """

    level: int
    row: int
    column: int
    rows: int  # cells within the input
    columns: int
    strongest: Float32  # (256, 256) largest weight of each cell
    mass: Float32  # (256, 256) sum of the weights of each cell


@dataclass(frozen=True)
class HeadOverview:
    """A whole head in the one tile of its coarsest level, from every `step`-th row."""

    level: int
    step: int  # 1: exact
    strongest: Float32  # (R, C), both at most 256
    mass: Float32
    column_mass: Float64  # (M,) what each key gets from all rows
    kept: Float64  # by level: Σ strongest / Σ mass; NaN if sampled
    drawn: Float64  # by level: share of the mass in cells that have a colour; NaN if sampled

    @property
    def total(self) -> float:
        """Get the mass of all rows."""
        return float(self.column_mass.sum())

    def sinks(self) -> list[int]:
        """Return the keys that are sinks of this head, by the rule of `sinks.py`."""
        return [int(key) for key in sinks_of(self.column_mass)]


class Pyramid:
    """All levels of one head of one input, without the keys that were taken out."""

    def __init__(self, weights: HeadWeights, without: Sequence[int] = (), signed: bool = False):
        self._weights, self.n, self.m, self.signed = weights, weights.n, weights.m, signed
        self.without = tuple(without)
        self.top = _levels(max(self.n, self.m), TILE)
        self._fine = min(self.top, max(FINE, _levels(max(self.n, self.m), _SIDE)))
        self._coarse = CoarseLevels(weights, self._fine, self.top, signed)

    @property
    def bytes(self) -> int:
        """Get the size in memory once everything was computed."""
        return self._weights.bytes + self._coarse.bytes

    def tile(self, level: int, row: int, column: int) -> Tile:
        """Return one tile; a PickError says which there are."""
        if not 0 <= level <= self.top:
            raise PickError(f"there is no level {level}; this head has 0 to {self.top}")
        down, across = -(-self.n // 2**level), -(-self.m // 2**level)
        if not (0 <= row * TILE < down and 0 <= column * TILE < across):
            raise PickError(
                f"there is no tile {row}, {column}; level {level} has {-(-down // TILE)} × "
                f"{-(-across // TILE)} tiles, counted from 0"
            )
        rows = range(row * TILE, min((row + 1) * TILE, down))
        columns = range(column * TILE, min((column + 1) * TILE, across))
        cells = (_padded(part) for part in self._cells(level, rows, columns))
        return Tile(level, row, column, len(rows), len(columns), *cells)

    def overview(self) -> HeadOverview:
        """Return the whole head from all rows, exactly."""
        coarse = self._coarse
        coarse.finish()
        total = coarse.column_mass.sum() or 1.0
        return HeadOverview(
            self.top, 1, *coarse.level(self.top), coarse.column_mass,
            coarse.strongest_sums / total, 1 - coarse.faint_sums / total,
        )  # fmt: skip

    @cached_property
    def sampled(self) -> HeadOverview:
        """Get the whole head from every 16th row; masses are scaled up to all rows."""
        step, side = min(STEP, 2**self.top), 2**self.top
        numbers = np.arange(0, self.n, step)
        tall = max(_ROWS, side // step)
        bands = each(self._sample, [numbers[at : at + tall] for at in range(0, len(numbers), tall)])
        strongest, mass = (np.concatenate([band[part] for band in bands]) for part in (0, 1))
        in_cell = np.minimum(side, self.n - side * np.arange(len(mass)))
        mass *= (in_cell / -(-in_cell // step))[:, None].astype(np.float32)
        column_mass = np.sum([band[2] for band in bands], axis=0) * (self.n / len(numbers))
        unknown = np.full(self.top + 1, np.nan)
        return HeadOverview(self.top, step, strongest, mass, column_mass, unknown, unknown)

    def _sample(self, rows: npt.NDArray[np.intp]) -> tuple[Float32, Float32, Float64]:
        """Return the coarsest cells, strongest and mass, of some rows, and their column mass."""
        side = 2**self.top
        tall = max(1, side // STEP)  # sampled rows of a cell
        shape = -(-len(rows) // tall), -(-self.m // side)
        strongest, mass = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
        column_mass, band = np.zeros(self.m), self._weights.band(rows)
        for columns in pieces(_aligned(band.reach, side), max(WIDE, side)):
            weights = band.piece(columns)
            sizes = np.abs(weights) if self.signed else weights
            column_mass[columns.start : columns.stop] = sizes.sum(axis=0)
            place = slice(columns.start // side, -(-columns.stop // side))
            mass[:, place] = _reduced(sizes, tall, side, np.add)
            strongest[:, place] = _reduced(weights, tall, side, np.maximum)
            if self.signed:
                lowest = _reduced(weights, tall, side, np.minimum)
                strongest[:, place] = farther(strongest[:, place], lowest)
        return strongest, mass, column_mass

    def _cells(self, level: int, rows: range, columns: range) -> tuple[Float32, Float32]:
        """Return strongest and mass (R, C) of some cells of a level."""
        large = len(rows) * len(columns) * 4**level > _DIRECT
        if level < self._fine or not (large or self._coarse.done):
            return self._computed(level, rows, columns)
        self._coarse.finish()
        place = slice(rows.start, rows.stop), slice(columns.start, columns.stop)
        strongest, mass = self._coarse.level(level)
        return strongest[place], mass[place]

    def _computed(self, level: int, rows: range, columns: range) -> tuple[Float32, Float32]:
        """Compute some cells of a level from their weights, a band of rows at a time."""
        side = 2**level
        first, last = rows.start * side, min(rows.stop * side, self.n)
        left, right = columns.start * side, min(columns.stop * side, self.m)
        tall = max(TILE, side)

        def band(top: int) -> tuple[Float32, Float32]:
            own = self._weights.band(np.arange(top, min(top + tall, last)))
            height = -(-(min(top + tall, last) - top) // side)
            cells = np.zeros((2, height, len(columns)), np.float32)
            seen = _aligned(own.reach, side)
            for part in pieces(range(max(left, seen.start), min(right, seen.stop)), WIDE):
                start = part.start // side - columns.start
                cells[:, :, start : start + -(-len(part) // side)] = pooled(
                    own.piece(part), level, self.signed
                )
            return cells[0], cells[1]

        bands = each(band, list(range(first, last, tall)))
        strongest, mass = zip(*bands, strict=True)
        return np.concatenate(strongest), np.concatenate(mass)


def _reduced(weights: Float32, tall: int, side: int, how: np.ufunc) -> Float32:
    """Return the maximum, minimum or sum of cells of `tall` rows and `side` columns."""
    down = _reduced_rows(weights, tall, how)
    return np.asarray(how.reduceat(down, np.arange(0, weights.shape[1], side), axis=1))


def _reduced_rows(weights: Float32, tall: int, how: np.ufunc) -> Float32:
    """Return the maximum or sum of every `tall` rows; the last may be fewer."""
    whole = len(weights) - len(weights) % tall
    rows = how.reduce(weights[:whole].reshape(-1, tall, weights.shape[1]), axis=1)
    if whole == len(weights):
        return np.asarray(rows)
    return np.concatenate([rows, how.reduce(weights[whole:], axis=0)[None]])


def _levels(length: int, side: int) -> int:
    """Return the first level at which a length has at most `side` cells."""
    return max(0, -(-length // side) - 1).bit_length()


def _aligned(columns: range, side: int) -> range:
    """Return columns from the start of the cell in which they start."""
    return range(columns.start - columns.start % side, columns.stop)


def _padded(cells: Float32) -> Float32:
    height, width = cells.shape
    return np.pad(cells, ((0, TILE - height), (0, TILE - width)))
