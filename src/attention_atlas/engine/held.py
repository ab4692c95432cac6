"""Which large objects does a process keep in memory for its jobs?

A job is data and cannot carry a model or an open atlas. The caller holds such an object under a
key. A job that runs in the caller's process gets that object; a job elsewhere makes its own.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from uuid import uuid4

T = TypeVar("T")
_held: dict[str, Any] = {}
_made: dict[str, Any] = {}  # the last object that a job made in this process


@contextmanager
def holding(thing: Any) -> Iterator[str]:
    """Hold `thing` in memory inside the block; yield its key."""
    key = uuid4().hex
    _held[key] = thing
    try:
        yield key
    finally:
        del _held[key]


def held(key: str, make: Callable[[], T]) -> T:
    """Return the object held under `key`, else call `make`, once for all jobs of that key."""
    if key in _held:
        from_caller: T = _held[key]
        return from_caller
    if key not in _made:
        _made.clear()
        _made[key] = make()
    from_job: T = _made[key]
    return from_job
