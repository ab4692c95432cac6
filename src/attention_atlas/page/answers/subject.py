"""What a view is of."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd

from attention_atlas.names.head import Head
from attention_atlas.store.manifest import Tower


class Subject(Protocol):
    """What a view is of: an Atlas, or plain Attention."""

    @property
    def towers(self) -> tuple[Tower, ...]: ...
    def __len__(self) -> int: ...
    def inputs(self) -> pd.DataFrame: ...
    def tokens(self, input: int, stream: str | None = None) -> pd.DataFrame: ...
    def layer_weights(
        self, input: int = 0, layer: int = 0, tower: str | None = None
    ) -> npt.NDArray[np.float32]: ...
    def weights(
        self, input: int = 0, head: str | Head = "L0H0", rows: Sequence[int] | None = None
    ) -> npt.NDArray[np.float32]: ...
