"""How are two captures kept from writing into one folder?

The one that writes holds a lock on `capture.lock.part`. The system gives it back when the process
ends, however it ends, so a folder is never locked by a process that is gone. Where a file system
has no locks, or the folder cannot be written to, there is none.
"""

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
except ImportError:  # all others
    msvcrt = None  # type: ignore[assignment]

LOCK = "capture.lock.part"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder; raise a StoreError if another process holds it."""
    created = not folder.exists()
    lock = _take(folder)
    try:
        yield
    finally:
        if lock is not None:
            if fcntl is not None:  # while it is held, or that of another would be deleted
                _delete(folder / LOCK)
            os.close(lock)
            if fcntl is None:  # Windows deletes no open file, neither ours nor that of another
                _delete(folder / LOCK)
        if created:
            with suppress(OSError):  # not empty: it has what was captured
                folder.rmdir()


def _take(folder: Path) -> int | None:
    """Return the descriptor that holds the lock; None where there are no locks."""
    while True:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError:  # what writes into the folder says why it cannot
            return None
        try:
            _hold(lock)
        except BlockingIOError:
            os.close(lock)
            raise StoreError(
                f"another capture is writing into {folder}; wait until it is done, "
                "or name another folder"
            ) from None
        except OSError:
            os.close(lock)
            return None
        if _is_same(folder / LOCK, lock):
            return lock
        os.close(lock)  # the one who held it has just deleted it


def _delete(path: Path) -> None:
    with suppress(OSError):
        path.unlink()


def _hold(lock: int) -> None:
    """Lock an open file; raise a BlockingIOError if another holds it, an OSError if none can."""
    if fcntl is not None:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    elif msvcrt is not None:
        try:
            msvcrt.locking(lock, msvcrt.LK_NBLCK, 1)
        except PermissionError as problem:
            raise BlockingIOError(*problem.args) from None
    else:
        raise OSError("this system has no locks")


def _is_same(path: Path, lock: int) -> bool:
    try:
        return path.stat().st_ino == os.fstat(lock).st_ino
    except OSError:
        return False
