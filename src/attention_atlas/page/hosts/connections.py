"""How many connections does a server hold, and how long may each of them take?

A connection that sends nothing, or a request letter by letter, costs a file descriptor, and there
are few of those. So a request must be complete within some seconds, an answer must be taken, and
where there are too many connections the one that has waited longest for its own request goes first.
"""

import asyncio
from contextlib import suppress
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

SLOWEST_REQUEST = 20.0  # seconds from the first byte of a request, or from connecting, to its last
SLOWEST_READER = 60.0  # seconds in which a client takes nothing of its answer
MOST = 400  # connections; fewer where the system allows fewer files
BACKLOG = 100  # connections that are accepted in one go, before any of them can be closed
_EVERY = 2.0  # seconds between two looks at a connection
_SORRY = b"too many connections are open here; try again in a minute\n"
_REFUSAL = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%b" % (len(_SORRY), _SORRY)
)


def most() -> int:
    """Return how many connections may be open: less than half of the files that may be."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return MOST
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if files == resource.RLIM_INFINITY else max(8, min(MOST, files // 2 - BACKLOG))


class Connection(H11Protocol):
    """One connection, which is closed when it takes too long."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.since = self.loop.time()
        self._deadline: float | None = self.since + SLOWEST_REQUEST  # of the request that is due
        self._answered: Any = None  # the last request that came in whole
        self._unsent, self._stuck = 0, self.since
        self._looking = self.loop.call_later(_EVERY, self._look)
        self._make_room()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and self.cycle is not self._answered and not self.cycle.more_body:
            self._answered, self._deadline = self.cycle, None
        elif self._deadline is None:  # the first bytes of another request
            self._deadline = self.loop.time() + SLOWEST_REQUEST

    def connection_lost(self, exc: Exception | None) -> None:
        self._looking.cancel()
        super().connection_lost(exc)

    @property
    def _answering(self) -> bool:
        """Get whether the server works on a request of this connection now."""
        return self._answered is not None and not self._answered.response_complete

    def _look(self) -> None:
        now, unsent = self.loop.time(), self.transport.get_write_buffer_size()
        if unsent == 0 or unsent != self._unsent:
            self._unsent, self._stuck = unsent, now
        late = self._deadline is not None and now > self._deadline and not self._answering
        if late or now - self._stuck > SLOWEST_READER:
            self.transport.abort()
            return
        self._looking = self.loop.call_later(_EVERY, self._look)

    def _make_room(self) -> None:
        """Close the connection that is least missed, if there are too many."""
        if len(self.connections) <= most():
            return
        idle = [
            other for other in self.connections
            if isinstance(other, Connection) and other is not self and not other._answering
        ]  # fmt: skip
        if idle:
            victim = min(idle, key=lambda other: other.since)
            self.connections.discard(victim)
            victim.transport.abort()
            return
        with suppress(OSError):
            self.transport.write(_REFUSAL)
        self.transport.close()
