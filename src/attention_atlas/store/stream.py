"""How do gigabytes get to the disk at its own speed, and not into the system's cache?

New cache pages for a file of gigabytes cost more than everything else, and displace pages that
other programs need; so what is written is put on the disk at once and dropped from the cache. A
thread of its own waits for the disk, while checksums are computed and the next bytes are written.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from io import FileIO
from typing import TypeVar

from attention_atlas.store.seal import CHUNK, Checksum

MOST_WAITING = 8 * CHUNK  # bytes written that the disk does not have yet
Item = TypeVar("Item")
Result = TypeVar("Result")


class FileStream(AbstractContextManager["FileStream"]):
    """A file that is written from its first byte to its last, and its checksum so far."""

    def __init__(self, file: FileIO):
        self.digest = Checksum()
        self._file, self._waiting = file, 0
        self._thread: ThreadPoolExecutor | None = None  # only for files of more than a chunk
        self._syncing: Future[None] | None = None

    def write(self, data: bytes | memoryview) -> None:
        """Write data in chunks, and update the checksum."""
        for start in range(0, len(data), CHUNK):
            chunk = memoryview(data)[start : start + CHUNK]
            self.digest.update(chunk)
            self._waiting += len(chunk)
            while chunk:
                chunk = chunk[self._file.write(chunk) :]
            if len(data) - start >= CHUNK and hasattr(os, "posix_fadvise"):
                self._sync()

    def __exit__(self, *_problem: object) -> None:
        if self._thread is None:
            return
        self._thread.shutdown()
        if self._syncing is not None and _problem[0] is None:
            self._syncing.result()

    def _sync(self) -> None:
        """Start to sync what was written, unless that is under way and little waits for it."""
        if self._syncing is not None:
            if not self._syncing.done() and self._waiting < MOST_WAITING:
                return
            self._syncing.result()
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1)
        self._waiting = 0
        self._syncing = self._thread.submit(_to_disk, self._file.fileno(), self._file.tell())


def _to_disk(file: int, end: int) -> None:
    os.fdatasync(file)
    os.posix_fadvise(file, 0, end, os.POSIX_FADV_DONTNEED)


def one_ahead(work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Yield the result of every item, in order; the next one is made while one is used."""
    with ThreadPoolExecutor(1) as thread:
        ahead: Future[Result] | None = None
        for item in items:
            ready, ahead = ahead, thread.submit(work, item)
            if ready is not None:
                yield ready.result()
        if ahead is not None:
            yield ahead.result()
