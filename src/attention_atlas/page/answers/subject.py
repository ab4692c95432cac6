"""What can a view show?"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd

from attention_atlas.names.head import Head
from attention_atlas.store.manifest import Tower
from attention_atlas.store.pyramids import Without
from attention_atlas.store.tiles import Pyramid


class Weighted(Protocol):
    """A source of weights, read a layer or less at a time."""

    def shape(self, input: int, layer: int, tower: str | None = None) -> tuple[int, int, int]:
        """Return how many heads, rows and columns the weights of an input have in one layer."""

    def rows(
        self,
        input: int,
        layer: int,
        tower: str | None = None,
        heads: Sequence[int] | None = None,
        rows: Sequence[int] | None = None,
        columns: Sequence[int] | None = None,
    ) -> npt.NDArray[np.float32]:
        """Return the weights (H, N, M) of some heads, rows and columns; None means all."""


class Windowed(Protocol):
    """A source of weights of long inputs, read in windows."""

    def window(
        self, input: int, layer: int, tower: str | None, rows: range, columns: range,
        heads: Sequence[int] | None = None,
    ) -> npt.NDArray[np.float32]:  # fmt: skip
        """Return the weights (H, R, C) of some rows and columns; other columns cost nothing."""


class Subject(Weighted, Windowed, Protocol):
    """What a view shows: an atlas, or plain Attention."""

    @property
    def towers(self) -> tuple[Tower, ...]: ...
    def __len__(self) -> int: ...
    def inputs(self) -> pd.DataFrame: ...
    def tokens(self, input: int, stream: str | None = None) -> pd.DataFrame: ...
    def layer_weights(
        self, input: int = 0, layer: int = 0, tower: str | None = None
    ) -> npt.NDArray[np.float32]: ...
    def pyramid(self, input: int, head: str | Head, without: Without = ()) -> Pyramid: ...
    def weights(
        self, input: int = 0, head: str | Head = "L0H0", rows: Sequence[int] | None = None
    ) -> npt.NDArray[np.float32]: ...
