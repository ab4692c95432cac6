"""Does anybody still wait for what is being computed?

A server says so of each request (`while_wanted`), and long computations ask between their steps
(`stop_if_unwanted`). Work that nobody can abandon is always wanted.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from attention_atlas.names.errors import AtlasError


class UnwantedError(AtlasError):
    """The one who asked has gone."""


_wanted: ContextVar[Callable[[], bool] | None] = ContextVar("wanted", default=None)


@contextmanager
def while_wanted(wanted: Callable[[], bool]) -> Iterator[None]:
    """Let computations of this context stop when `wanted` returns False."""
    token = _wanted.set(wanted)
    try:
        yield
    finally:
        _wanted.reset(token)


def stop_if_unwanted() -> None:
    """Raise an UnwantedError if nobody waits for this computation any more."""
    stopper()()


def stopper() -> Callable[[], None]:
    """Return `stop_if_unwanted` of this context, for threads that do not know it."""
    wanted = _wanted.get()

    def stop() -> None:
        if wanted is not None and not wanted():
            raise UnwantedError("this is no longer wanted; ask for it again")

    return stop
