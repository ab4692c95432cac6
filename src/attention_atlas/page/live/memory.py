"""Is memory that nobody uses given back to the system?

Answers, edited inputs and the arrays that they are made of come and go in many threads. glibc keeps
what is freed for later, in pieces between those that are still used, so a server grows by some
megabytes a minute although it keeps no more than before. `Tidy` gives whole free pages back.
"""

import ctypes
import sys
import threading
import time

PERIOD = 15.0  # seconds between two tidyings; one takes some milliseconds


class Tidy:
    """Gives free memory back after work, once in a while."""

    def __init__(self, period: float | None = None) -> None:
        self._period = PERIOD if period is None else period
        self._last, self._lock = time.monotonic(), threading.Lock()

    def after_work(self) -> None:
        """Give free memory back if the last time is long ago; other threads do not wait."""
        if time.monotonic() - self._last < self._period or not self._lock.acquire(blocking=False):
            return
        try:
            give_back()
        finally:
            self._last = time.monotonic()
            self._lock.release()


def give_back() -> None:
    """Give whole free pages back to the system, where its allocator can (glibc)."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
