"""Which heavy things does a process keep at hand for its jobs?

A job is data and cannot carry a model or an open atlas. The caller holds what it has under a key;
a job finds it there if it runs in the caller's process, and makes its own where it does not.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from uuid import uuid4

T = TypeVar("T")
_held: dict[str, Any] = {}
_made: dict[str, Any] = {}  # the last one that was made here


@contextmanager
def holding(thing: Any) -> Iterator[str]:
    """Keep `thing` at hand inside the block; gives its key."""
    key = uuid4().hex
    _held[key] = thing
    try:
        yield key
    finally:
        del _held[key]


def held(key: str, make: Callable[[], T]) -> T:
    """Return what is held under `key`, else what `make` makes, once for all jobs of that key."""
    if key in _held:
        found: T = _held[key]
        return found
    if key not in _made:
        _made.clear()
        _made[key] = make()
    made: T = _made[key]
    return made
