"""How do all layers of an input shuffle alike without drawing anew?

The chance of a score must not depend on how layers are cut, so each stack of layers draws the same
numbers. Those of a long input are tens of millions, which take longer than to measure with them; so
what is drawn is kept for the next layers.
"""

from collections.abc import Mapping
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt
from cachetools import LRUCache

WORTH = 1_000_000  # numbers of one draw; fewer are drawn anew
MOST = 2**28  # bytes that are kept
Drawn = tuple[npt.NDArray[Any], Mapping[str, Any]]  # numbers, and the state of the dice after them
_kept: LRUCache[object, Drawn] = LRUCache(MOST, getsizeof=lambda drawn: drawn[0].nbytes)
_lock = Lock()


class InputDice(np.random.Generator):
    """The dice of one input: they draw what `np.random.default_rng([seed, number])` draws."""

    def __init__(self, seed: int, number: int):
        super().__init__(np.random.PCG64(np.random.SeedSequence([seed, number])))

    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        """Draw numbers from 0 to 1; many of them are kept, and must not be changed."""
        count = int(np.prod(size)) if size is not None else 1
        if count < WORTH or out is not None or count * np.dtype(dtype).itemsize > MOST:
            return super().random(size, dtype, out)
        before = self.bit_generator.state
        key = before["state"]["state"], before["state"]["inc"], before["has_uint32"], size, dtype
        with _lock:  # two threads begin with the same numbers
            if key not in _kept:
                numbers: npt.NDArray[Any] = super().random(size, dtype)
                _kept[key] = numbers, self.bit_generator.state
            numbers, after = _kept[key]
        self.bit_generator.state = after
        return numbers
