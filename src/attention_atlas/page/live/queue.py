"""Where does the work of all pages of one server wait? In lanes, by what it takes.

quick   packets that are read from the folder
slow    packets that are computed: tiles, scores, comparisons
model   what the live model does: edits, added texts, tests of labels; it does one thing at a time
maps    maps that are computed, which takes minutes
ahead   what a page may ask for next, while there is nothing else to do
"""

import time
from collections.abc import Callable
from itertools import count
from typing import Any, Literal

from attention_atlas.page.live.lane import Lane, Ticket
from attention_atlas.page.live.memory import Tidy
from attention_atlas.page.wire.constants import MOST_WAITING
from attention_atlas.page.wire.queue import Queued, QueueLine

LaneName = Literal["quick", "slow", "model", "maps", "ahead"]
# name → at once, waiting of all pages, waiting of one page
LANES: dict[LaneName, tuple[int, int, int]] = {
    "quick": (8, 1000, 200),
    "slow": (2, 200, 40),
    "model": (1, 24, MOST_WAITING),
    "maps": (1, 8, 4),
    "ahead": (1, 8, 8),
}


class Queue:
    """The work of all pages of one server."""

    def __init__(self) -> None:
        tidy = Tidy()
        self.lanes = {name: Lane(name, *sizes, tidy.after_work) for name, sizes in LANES.items()}
        self._numbers = count(1)
        self._since = time.monotonic()  # when work was last asked for

    def enter(
        self, lane: LaneName, work: Callable[[], Any], page: str = "", what: str = ""
    ) -> Ticket:
        """Let work wait for its turn; return its ticket. A BusyError says that too much waits."""
        ticket = Ticket(next(self._numbers), what, page, work)
        self.lanes[lane].enter(ticket)
        if lane != "ahead":
            self._since = time.monotonic()
        return ticket

    def is_idle(self, seconds: float) -> bool:
        """Tell whether there is no work, and nobody has asked for any for some seconds."""
        others = [lane for name, lane in self.lanes.items() if name != "ahead"]
        return time.monotonic() - self._since >= seconds and not any(x.tickets() for x in others)

    def leave(self, ticket: Ticket) -> None:
        """Give up a piece of work."""
        for lane in self.lanes.values():
            lane.leave(ticket)

    def leave_number(self, page: str, number: int) -> None:
        """Give up a piece of work of a page, by its number; nothing happens if it has ended."""
        for lane in self.lanes.values():
            for ticket in lane.tickets(page):
                if ticket.number == number:
                    lane.leave(ticket)

    def ahead(self, ticket: Ticket) -> int:
        """Count the pieces of work before this one; 0 if it runs or has ended."""
        return max(lane.ahead(ticket) for lane in self.lanes.values())

    def of_page(self, page: str) -> Queued:
        """Return what a page shows of its own work. Packets that are only read are not listed."""
        now = time.monotonic()
        return Queued([
            QueueLine(
                ticket.number, ticket.what, ticket.running, lane.ahead(ticket), ticket.done,
                ticket.total, round(now - ticket.since, 1),
            )
            for name, lane in self.lanes.items() if name in ("slow", "model")
            for ticket in lane.tickets(page)
        ])  # fmt: skip

    def close(self, patience: float = 10.0) -> None:
        """Give up all work and wait until what runs has stopped, some seconds at most."""
        for lane in self.lanes.values():
            for ticket in lane.tickets():
                lane.leave(ticket)
        end = time.monotonic() + patience
        while any(lane.running for lane in self.lanes.values()) and time.monotonic() < end:
            time.sleep(0.02)
