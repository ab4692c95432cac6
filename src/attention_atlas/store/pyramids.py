"""Which pyramids of tiles are kept? Those of the heads that were looked at last."""

import threading
from collections.abc import Callable, Hashable, Sequence
from typing import Literal

from cachetools import LRUCache

from attention_atlas.names.errors import PickError
from attention_atlas.store.tiles import Pyramid

KEPT = 150_000_000  # bytes of pyramids that are kept; one of 32,768 tokens has about 60 MB
MOST_WITHOUT = 64  # keys taken out at once

Without = Sequence[int] | Literal["sinks"]


class Pyramids:
    """The pyramids of some heads, within bounds."""

    def __init__(self) -> None:
        self._kept: LRUCache[Hashable, Pyramid] = LRUCache(
            KEPT, getsizeof=lambda pyramid: min(KEPT, pyramid.bytes)
        )
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Pyramid]) -> Pyramid:
        """Return the pyramid of a key, kept or new."""
        with self._lock:
            pyramid = self._kept.get(key)
            if pyramid is None:
                pyramid = self._kept[key] = make()
            return pyramid


def removed(without: Without, plain: Callable[[], Pyramid], m: int) -> tuple[int, ...]:
    """Return the keys to take out, in rising order; `sinks` are those of the plain pyramid."""
    if isinstance(without, str):
        if without != "sinks":
            raise PickError(f"{without[:40]!r} names no keys; give their positions, or sinks")
        return tuple(plain().sampled.sinks())
    keys = tuple(sorted({int(key) for key in without}))
    if len(keys) > MOST_WITHOUT:
        raise PickError(f"{len(keys)} keys are too many to take out; give at most {MOST_WITHOUT}")
    if keys and not 0 <= keys[0] <= keys[-1] < m:
        raise PickError(f"keys go from 0 to {m - 1}; asked to take out {list(keys)[:5]}")
    return keys
