"""Who computes what several threads want at once? The first; the others wait and find it kept."""

import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager


class Turns:
    """One lock for each thing that is being computed now."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._locks: dict[Hashable, tuple[threading.Lock, int]] = {}  # and how many hold or want it

    @contextmanager
    def of(self, thing: Hashable) -> Iterator[None]:
        """Wait until nobody else computes a thing."""
        with self._lock:
            own, count = self._locks.get(thing, (threading.Lock(), 0))
            self._locks[thing] = own, count + 1
        try:
            with own:
                yield
        finally:
            with self._lock:
                own, count = self._locks.pop(thing)
                if count > 1:
                    self._locks[thing] = own, count - 1
