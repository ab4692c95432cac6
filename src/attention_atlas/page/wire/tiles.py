"""What does the page get of a long input? One head's weights as tiles of a pyramid.

A cell of level l covers 2^l × 2^l weights; level 0 has one cell a weight. Tile (row, column) covers
the cells from 256 · row and 256 · column on. `without` in a path takes keys out, and every row is a
softmax over the keys that are left: positions as in 0,5,7 or the word sinks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from attention_atlas.page.wire.packing import Array, Buffer


@dataclass(frozen=True)
class TileCells:
    """Some cells of one level; a cell's strongest weight is (value / 65535)² · peak.

    Of contributions, which have signs, it is the one farthest from zero: ± (value / 32767)² · peak.
    Its mass, the sum of its weights (or of their sizes), is (value / 65535)² · most. Cells beyond
    the input are left out, so R and C are 256 or less.
    """

    strongest: Annotated[Array, Buffer(("u2", "i2"), "R C")]
    mass: Annotated[Array, Buffer(("u2",), "R C")]
    peak: float  # largest `strongest` of these cells; 0: nothing is attended to here
    most: float  # largest `mass` of these cells


@dataclass(frozen=True)
class TilePacket:
    """`tile/{i}/{head}/{level}/{row}/{column}` or `…/{column}/{without}`: one tile, exact."""

    input: int
    head: str
    level: int
    row: int
    column: int
    cells: TileCells
    without: Sequence[int]  # positions of the keys that were taken out


@dataclass(frozen=True)
class OverviewPacket:
    """`overview/{i}/{head}/{sampled}` or `…/{sampled}/{without}`: a whole head in one tile.

    sampled 1: from every `step`-th row, at once; masses are scaled up and the strongest weight of
    a cell may be missed. sampled 0: from all rows, exact.
    """

    input: int
    head: str
    n: int  # queries
    m: int  # keys
    level: int  # the coarsest level: its only tile is `cells`
    step: int  # every step-th row was read; 1: all rows
    cells: TileCells
    column_mass: Annotated[Array, Buffer(("f4",), "M")]  # what each key gets from all rows
    total: float  # mass of all rows: their number, or less if the head has a sink of its own
    sinks: Sequence[int]  # keys that get far more than their share: the word sinks means these
    without: Sequence[int]
    # By level, from 0; NaN if only some rows were read.
    # The share of the mass that the strongest weights of the cells are: the rest is behind them.
    kept: Annotated[Array, Buffer(("f4",), "levels")]
    # The share of the mass in cells whose mean weight is at least FAINTEST_CELL.
    drawn: Annotated[Array, Buffer(("f4",), "levels")]
