"""How are two captures kept from writing into one folder?

The one that writes holds a lock on `capture.lock.part`. The system gives it back when the process
ends, however it ends, so a folder is never locked by a process that is gone. Windows has locks of
its own (msvcrt). Where a file system has no locks, or the folder cannot be written to, there is
none.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from attention_atlas.names.errors import StoreError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]
try:
    import msvcrt
except ImportError:  # everything else
    msvcrt = None  # type: ignore[assignment]

LOCK = "capture.lock.part"
_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)  # Windows hands nothing down
_HELD = (errno.EAGAIN, errno.EACCES, errno.EDEADLK)  # what a system says of another's lock


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder; raise a StoreError if another process holds it."""
    created = not folder.exists()
    lock = _take(folder)
    try:
        yield
    finally:
        if lock is not None:
            _release(folder / LOCK, lock)
        if created:
            with suppress(OSError):  # not empty: it has what was captured
                folder.rmdir()


def _take(folder: Path) -> int | None:
    """Return the descriptor that holds the lock; None where there are no locks."""
    while True:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock = os.open(folder / LOCK, _FLAGS, 0o666)
        except OSError:  # what writes into the folder says why it cannot
            return None
        try:
            _hold(lock)
        except OSError as problem:
            os.close(lock)
            if problem.errno not in _HELD:
                return None
            raise StoreError(
                f"another capture is writing into {folder}; wait until it is done, "
                "or name another folder"
            ) from None
        if _is_same(folder / LOCK, lock):
            return lock
        os.close(lock)  # the one who held it has just deleted it


def _hold(lock: int) -> None:
    """Lock an open file without waiting; raise an OSError if another process holds it."""
    if fcntl is not None:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    elif msvcrt is not None:
        msvcrt.locking(lock, msvcrt.LK_NBLCK, 1)


def _release(path: Path, lock: int) -> None:
    """Delete and close the file of a lock; Windows deletes no file that is open."""
    if fcntl is None:
        os.close(lock)
    with suppress(OSError):  # on Windows: the next one holds it already
        path.unlink()
    if fcntl is not None:
        os.close(lock)


def _is_same(path: Path, lock: int) -> bool:
    try:
        return path.stat().st_ino == os.fstat(lock).st_ino
    except OSError:
        return False
