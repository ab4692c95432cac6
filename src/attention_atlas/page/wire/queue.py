"""What does a page get of the queue? Its own pieces of work that wait or run, and how to leave."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class QueueLine:
    """One piece of work of a page."""

    ticket: int
    what: str  # the name of the action, or the first word of the path
    running: bool
    ahead: int  # pieces of work that come before it; 0 if it runs
    done: int  # as far as it counts: of `total`
    total: int  # 0: it does not count
    seconds: float  # since it began to run, or to wait


@dataclass(frozen=True)
class Queued:
    """`queue/{page}`: the work of a page that waits or runs on the server."""

    lines: Sequence[QueueLine]


@dataclass(frozen=True)
class Leave:
    """`leave`: give up a piece of work; one that runs stops at its next step."""

    page: str
    ticket: int
