"""How do gigabytes get to the disk at its own speed, and not into the system's cache?

New cache pages for a file of gigabytes cost more than everything else, and displace pages that
other programs need. So a large file is put together in a few chunks of memory, which a thread
writes past the cache, where the system can do that (O_DIRECT), and which are then used again.
"""

import errno
import mmap
import os
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from pathlib import Path

import numpy as np
import numpy.typing as npt

from attention_atlas.store.seal import CHUNK, Checksum

MOST_WAITING = 4  # chunks in memory that the disk does not have yet
PAGE = 4096  # bytes: what goes past the cache has a multiple of them, in memory and in the file
Chunk = npt.NDArray[np.uint8]


class FileStream(AbstractContextManager["FileStream"]):
    """A file of a known size that is written from its first byte to its last, with its checksum."""

    def __init__(self, path: Path, size: int):
        self._digest = Checksum()
        self._file, self._past_cache = _opened(path, large=size > CHUNK)
        # A file of several chunks is written while the next ones are put together.
        self._disk = ThreadPoolExecutor(1) if size > CHUNK else None
        self._waiting: deque[tuple[Future[None], Chunk]] = deque()
        self._free: list[Chunk] = []
        self._chunk, self._used = _chunk(min(size, CHUNK)), 0

    def write(self, data: bytes | memoryview) -> None:
        """Add data to the end of the file."""
        rest = np.frombuffer(data, np.uint8)
        while len(rest):
            if self._used == len(self._chunk):
                self._hand_over()
            part = rest[: len(self._chunk) - self._used]
            np.copyto(self._chunk[self._used :][: len(part)], part)  # lets other threads run
            self._used, rest = self._used + len(part), rest[len(part) :]

    def finish(self) -> str:
        """Write what is left; return the checksum of the file."""
        self._hand_over()
        while self._waiting:
            self._wait()
        return self._digest.hexdigest()

    def replace(self, place: int, data: bytes) -> None:
        """Write data over what stands at a place of the file, once it is finished."""
        self._use_cache()
        os.lseek(self._file, place, os.SEEK_SET)
        os.write(self._file, data)

    def __exit__(self, *_problem: object) -> None:
        if self._disk is not None:
            self._disk.shutdown()
        os.close(self._file)

    def _hand_over(self) -> None:
        """Let the chunk be written; take another one."""
        if self._disk is None:
            self._put(self._chunk, self._used)
        else:
            job = self._disk.submit(self._put, self._chunk, self._used)
            self._waiting.append((job, self._chunk))
            while self._waiting and (
                len(self._waiting) >= MOST_WAITING or self._waiting[0][0].done()
            ):
                self._wait()
            self._chunk = self._free.pop() if self._free else _chunk(CHUNK)
        self._used = 0

    def _wait(self) -> None:
        job, chunk = self._waiting.popleft()
        job.result()
        self._free.append(chunk)

    def _put(self, chunk: Chunk, size: int) -> None:
        rest = chunk[:size].data
        self._digest.update(rest)
        while rest:
            if len(rest) % PAGE:  # the end of the file, or a part of a chunk
                self._use_cache()
            try:
                rest = rest[os.write(self._file, rest) :]
            except OSError as problem:
                if problem.errno != errno.EINVAL or not self._past_cache:
                    raise
                self._use_cache()  # some file systems say only now that they cannot do it

    def _use_cache(self) -> None:
        if self._past_cache:
            import fcntl  # Linux has it, as it has O_DIRECT

            flags = fcntl.fcntl(self._file, fcntl.F_GETFL)
            fcntl.fcntl(self._file, fcntl.F_SETFL, flags & ~os.O_DIRECT)
            self._past_cache = False


def _opened(path: Path, large: bool) -> tuple[int, bool]:
    """Open a file for writing; return its descriptor, and whether it is written past the cache."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    flags |= getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    if large and hasattr(os, "O_DIRECT"):
        with suppress(OSError):  # a file system that cannot do it, or any other problem
            return os.open(path, flags | os.O_DIRECT, 0o666), True
    return os.open(path, flags, 0o666), False


def _chunk(size: int) -> Chunk:
    """Return memory that starts at a page."""
    return np.frombuffer(mmap.mmap(-1, max(1, size)), np.uint8)
