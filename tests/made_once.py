"""How is a costly folder made once for all workers of a test run?

The first worker that asks for it fills it under a lock. Every worker gets a copy of its own: a copy
costs milliseconds, and what a test writes into it (scores, layouts) reaches no other test.
"""

import fcntl
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

Make = Callable[[Path], object]
MadeOnce = Callable[[str, Make], Path]


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds a lock on a file that all workers of this machine see."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def copier(shared: Path, factory: pytest.TempPathFactory) -> MadeOnce:
    """Returns a function of a name and of what fills the folder of that name."""

    def copy(name: str, make: Make) -> Path:
        folder, finished = shared / f"once-{name}", shared / f"once-{name}.finished"
        with locked(shared / f"once-{name}.lock"):
            if not finished.exists():
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                make(folder)
                finished.touch()
        return Path(shutil.copytree(folder, factory.mktemp(name) / name))

    return copy
