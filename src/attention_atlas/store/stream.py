"""How do gigabytes get to the disk at its own speed, and not into the system's cache?

New cache pages for a file of gigabytes cost more than everything else, and displace pages that
other programs need; so what is written is put on the disk at once and dropped from the cache. One
thread waits for the disk and one computes checksums, while the next bytes are written.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from io import FileIO
from typing import TypeVar

from attention_atlas.store.seal import CHUNK, Checksum

MOST_WAITING = 8 * CHUNK  # bytes written that the disk does not have yet
MOST_SUMMED = 4  # chunks whose checksum is not computed yet
Item = TypeVar("Item")
Result = TypeVar("Result")


class FileStream(AbstractContextManager["FileStream"]):
    """A file that is written from its first byte to its last, and its checksum so far."""

    def __init__(self, file: FileIO):
        self._digest = Checksum()
        self._file, self._waiting = file, 0
        # Only for files of more than a chunk: one waits for the disk, one computes checksums.
        self._disk: ThreadPoolExecutor | None = None
        self._sums: ThreadPoolExecutor | None = None
        self._syncing: Future[None] | None = None
        self._summing: deque[Future[None]] = deque()

    def write(self, data: bytes | memoryview) -> None:
        """Write data in chunks, and update the checksum."""
        for start in range(0, len(data), CHUNK):
            chunk = memoryview(data)[start : start + CHUNK]
            self._update(chunk)
            self._waiting += len(chunk)
            while chunk:
                chunk = chunk[self._file.write(chunk) :]
            if len(data) - start >= CHUNK and hasattr(os, "posix_fadvise"):
                self._sync()

    def hexdigest(self) -> str:
        """Return the checksum of what was written."""
        while self._summing:
            self._summing.popleft().result()
        return self._digest.hexdigest()

    def __exit__(self, *_problem: object) -> None:
        for thread in (self._sums, self._disk):
            if thread is not None:
                thread.shutdown()
        if self._syncing is not None and _problem[0] is None:
            self._syncing.result()

    def _update(self, chunk: memoryview) -> None:
        """Update the checksum, of a whole chunk while that is written."""
        if self._sums is None:
            if len(chunk) < CHUNK:
                self._digest.update(chunk)
                return
            self._sums = ThreadPoolExecutor(1)
        if len(self._summing) >= MOST_SUMMED:  # what is not summed yet stays in memory
            self._summing.popleft().result()
        self._summing.append(self._sums.submit(self._digest.update, chunk))

    def _sync(self) -> None:
        """Start to sync what was written, unless that is under way and little waits for it."""
        if self._syncing is not None:
            if not self._syncing.done() and self._waiting < MOST_WAITING:
                return
            self._syncing.result()
        if self._disk is None:
            self._disk = ThreadPoolExecutor(1)
        self._waiting = 0
        self._syncing = self._disk.submit(_to_disk, self._file.fileno(), self._file.tell())


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
