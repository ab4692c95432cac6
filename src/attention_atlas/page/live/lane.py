"""Whose turn is it? A lane does a few pieces of work at once, and the pages that wait take turns.

One piece of each page is done before the second of any, so that a page which asks for much delays
others by one piece at most. A lane is bounded: more is refused, in a sentence.
"""

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Any

from attention_atlas.names.errors import AtlasError
from attention_atlas.names.progress import watched
from attention_atlas.names.wanted import UnwantedError, while_wanted

_IDLE = 5.0  # seconds until a thread without work ends


class BusyError(AtlasError):
    """The queue is full."""


class Ticket:
    """One piece of work that waits or runs; its result is that of `future`."""

    def __init__(self, number: int, what: str, page: str, work: Callable[[], Any]):
        self.number, self.what, self.page, self.work = number, what, page, work
        self.future: Future[Any] = Future()
        self.since = time.monotonic()
        self.running, self.wanted = False, True
        self.done = self.total = 0

    def count(self, done: int, total: int) -> None:
        """Note how far the work is."""
        self.done, self.total = done, total

    def run(self) -> None:
        """Do the work and hand over its result, unless it was given up meanwhile."""
        with while_wanted(lambda: self.wanted), watched(self.count):
            try:
                result = self.work()
            except BaseException as problem:
                with suppress(InvalidStateError):
                    self.future.set_exception(problem)
                return
        with suppress(InvalidStateError):
            self.future.set_result(result)

    def give_up(self) -> None:
        """Answer whoever waits; work that runs stops when it next asks whether it is wanted."""
        self.wanted = False
        with suppress(InvalidStateError):
            self.future.set_exception(UnwantedError("this was cancelled"))


class Lane:
    """Work of one sort.

    at_once  pieces that run at the same time
    most     pieces that may wait; of one page at most `each`
    after    called after each piece, in its thread
    """

    def __init__(
        self, name: str, at_once: int, most: int, each: int,
        after: Callable[[], None] = lambda: None,
    ):  # fmt: skip
        self.name, self.at_once, self.most, self.each = name, at_once, most, each
        self._after = after
        self.running: list[Ticket] = []
        self._waiting: OrderedDict[str, deque[Ticket]] = OrderedDict()  # by page, whose turn first
        self._threads = self._idle = 0
        self._changed = threading.Condition()

    def enter(self, ticket: Ticket) -> None:
        """Let a piece of work wait for its turn; a BusyError says that too many wait."""
        with self._changed:
            self._refuse(ticket)
            self._waiting.setdefault(ticket.page, deque()).append(ticket)
            waiting = sum(map(len, self._waiting.values()))
            if waiting > self._idle and self._threads < self.at_once:
                self._threads += 1
                threading.Thread(target=self._work, name=f"atlas {self.name}", daemon=True).start()
            self._changed.notify()

    def leave(self, ticket: Ticket) -> None:
        """Give up a piece of work."""
        with self._changed:
            own = self._waiting.get(ticket.page, deque())
            if ticket in own:
                own.remove(ticket)
                if not own:
                    del self._waiting[ticket.page]
        ticket.give_up()

    def ahead(self, ticket: Ticket) -> int:
        """Count the pieces of work that end or start before this one starts."""
        with self._changed:
            if ticket.page not in self._waiting or ticket not in self._waiting[ticket.page]:
                return 0
            rounds = self._waiting[ticket.page].index(ticket)
            ahead, before = rounds + len(self.running), True
            for page, own in self._waiting.items():
                if page == ticket.page:
                    before = False
                else:
                    ahead += min(len(own), rounds + before)
            return ahead

    def tickets(self, page: str | None = None) -> list[Ticket]:
        """List the work that runs or waits, of one page or of all, the oldest first."""
        with self._changed:
            waiting = [ticket for own in self._waiting.values() for ticket in own]
            every = [*self.running, *waiting]
        mine = [ticket for ticket in every if page is None or ticket.page == page]
        return sorted(mine, key=lambda ticket: ticket.number)

    def _refuse(self, ticket: Ticket) -> None:
        waiting = sum(map(len, self._waiting.values()))
        own = len(self._waiting.get(ticket.page, ()))
        if own >= self.each:
            raise BusyError(
                f"{own} pieces of your work wait already; wait for them, then try again"
            )
        if waiting >= self.most:
            raise BusyError(
                f"the server is busy: {waiting} pieces of work wait already; try again in a minute"
            )

    def _work(self) -> None:
        while (ticket := self._next()) is not None:
            try:
                ticket.run()
            finally:
                with self._changed:
                    self.running.remove(ticket)
            del ticket  # or its answer would be kept until the next piece of work
            self._after()

    def _next(self) -> Ticket | None:
        """Wait for the next piece of work; None after some seconds without any."""
        with self._changed:
            end = time.monotonic() + _IDLE
            while not self._waiting:
                self._idle += 1
                self._changed.wait(max(0.0, end - time.monotonic()))
                self._idle -= 1
                if not self._waiting and time.monotonic() >= end:
                    self._threads -= 1
                    return None
            page, own = self._waiting.popitem(last=False)
            ticket = own.popleft()
            if own:
                self._waiting[page] = own  # at the end: the others come first
            ticket.running, ticket.since = True, time.monotonic()
            self.running.append(ticket)
            return ticket
