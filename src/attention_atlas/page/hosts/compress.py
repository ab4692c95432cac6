"""Which answers are compressed? Large ones, for other machines: that saves more time than it takes.

It is done in the thread that makes the answer, since it would hold up all others in the event loop.
"""

import gzip
import threading

from cachetools import LRUCache

SMALLEST = 10_000  # bytes that are worth it
_KEPT = 64_000_000  # bytes of answers, plain and compressed


class Compressor:
    """The latest answers in gzip."""

    def __init__(self) -> None:
        self._kept: LRUCache[str, tuple[bytes, bytes]] = LRUCache(
            _KEPT, getsizeof=lambda pair: len(pair[0]) + len(pair[1])
        )
        self._lock = threading.Lock()

    def compress(self, name: str, content: bytes) -> bytes:
        """Return an answer in gzip; keep it under its name."""
        with self._lock:
            plain, small = self._kept.get(name, (b"", b""))
        if plain is content or (len(plain) == len(content) and plain == content):
            return small
        small = gzip.compress(content, 1)
        if len(content) + len(small) <= _KEPT:
            with self._lock:
                self._kept[name] = content, small
        return small
