"""How is one request answered? What is kept, at once; other work waits for its turn in the queue.

A request that waits holds no thread, so thousands of them do not keep others from being answered.
When its page goes away it leaves the queue, and work that runs for it stops at its next step.
"""

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool

from attention_atlas.names.wanted import UnwantedError
from attention_atlas.page.answers.grown import Grown
from attention_atlas.page.hosts.compress import SMALLEST, Compressor
from attention_atlas.page.hosts.page_html import page_html
from attention_atlas.page.hosts.refusal import PACKET, refused
from attention_atlas.page.hosts.static_files import static
from attention_atlas.page.live.ahead import Ahead
from attention_atlas.page.live.answers import Answers
from attention_atlas.page.live.lane import BusyError, Ticket

HTML = "text/html; charset=utf-8"
PAGE_NAME = "x-atlas-page"  # the header in which a page says its own name, drawn at random
_NAME = re.compile(r"[A-Za-z0-9]{1,32}")
_GZIP = {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}


class SentAnswer(NamedTuple):
    """An answer, which several requests may get."""

    content: bytes
    status: int = 200
    kind: str = PACKET
    zipped: bool = False

    def response(self) -> Response:
        headers = _GZIP if self.zipped else None
        return Response(self.content, self.status, headers=headers, media_type=self.kind)


Work = Callable[[], SentAnswer]


@dataclass
class Shared:
    """A packet in the making, and how many requests wait for it."""

    ticket: Ticket
    waiting: int = 0


class Sender:
    """What answers the requests for one subject; without a compressor nothing is compressed."""

    def __init__(self, answers: Answers, compressor: Compressor | None = None):
        self.answers, self.queue, self._compressor = answers, answers.queue, compressor
        self._shared: dict[tuple[str, bool], Shared] = {}  # used by the event loop alone
        subject = answers.session.subject
        grown = subject if isinstance(subject, Grown) else None
        self._ahead = Ahead(grown, self.queue, answers.packet) if grown is not None else None

    def begin(self) -> None:
        """Get ready for the first request, while there is nothing else to do."""
        if self._ahead is not None:
            self._ahead.at_start()

    async def packet(self, request: Request, path: str) -> Response:
        """Answer a request for a packet; those who ask for the same one wait for the same work."""
        zips, kept = self._zips(request), self.answers.kept(path)
        if kept is not None and (not zips or len(kept) < SMALLEST):
            return SentAnswer(kept).response()
        key, mine = (path, zips), False
        while True:
            shared = self._shared.get(key)
            if shared is None or shared.ticket.future.done():
                try:
                    shared, mine = Shared(self._enter(request, path, zips)), True
                except BusyError as problem:
                    return refused(str(problem), 503)
                if self.answers.is_lasting(path):
                    self._shared[key] = shared
            try:
                return (await self._answer(request, shared)).response()
            except UnwantedError as problem:
                if mine:
                    return refused(str(problem), 409)  # or else another page gave it up
            finally:
                if self._shared.get(key) is shared and shared.ticket.future.done():
                    del self._shared[key]

    async def action(self, request: Request, name: str, body: object) -> Response:
        """Answer a request for an action."""

        def work() -> SentAnswer:
            content, done = self.answers.perform(name, body)
            return SentAnswer(content, 200 if done else 404)

        lane = self.answers.action_lane(name)
        if lane is None:
            return (await run_in_threadpool(work)).response()
        try:
            ticket = self.queue.enter(lane, work, page_of(request), name)
            return (await self._answer(request, Shared(ticket))).response()
        except BusyError as problem:
            return refused(str(problem), 503)
        except UnwantedError as problem:
            return refused(str(problem), 409)

    def page(self, request: Request) -> Response:
        """Answer a request for the page itself."""
        content = page_html(self.answers.session.subject)
        return self._made("page", content, 200, HTML, self._zips(request)).response()

    def file(self, request: Request, name: str, kind: str) -> Response:
        """Answer a request for a file of the page."""
        content = static(name).read_bytes()
        return self._made(f"file {name}", content, 200, kind, self._zips(request)).response()

    def _enter(self, request: Request, path: str, zips: bool) -> Ticket:
        def work() -> SentAnswer:
            content, answered = self.answers.packet(path)
            if answered and self._ahead is not None:
                self._ahead.after(path)
            return self._made(path, content, 200 if answered else 404, PACKET, zips)

        word = path.partition("/")[0]
        return self.queue.enter(self.answers.lane(path), work, page_of(request), word)

    async def _answer(self, request: Request, shared: Shared) -> SentAnswer:
        """Wait for an answer; the work is given up when nobody is left who waits for it."""
        shared.waiting += 1

        async def listen() -> None:
            while (await request.receive())["type"] != "http.disconnect":
                pass
            if shared.waiting == 1:
                self.queue.leave(shared.ticket)

        listening = asyncio.create_task(listen())
        try:
            made: SentAnswer = await asyncio.shield(asyncio.wrap_future(shared.ticket.future))
            return made
        finally:
            listening.cancel()
            shared.waiting -= 1

    def _zips(self, request: Request) -> bool:
        return self._compressor is not None and "gzip" in request.headers.get("accept-encoding", "")

    def _made(self, name: str, content: bytes, status: int, kind: str, zips: bool) -> SentAnswer:
        if self._compressor is None or not zips or len(content) < SMALLEST:
            return SentAnswer(content, status, kind)
        return SentAnswer(self._compressor.compress(name, content), status, kind, True)


def page_of(request: Request) -> str:
    """Return the name of the page that asks, or the address of its machine."""
    name = request.headers.get(PAGE_NAME, "")
    if _NAME.fullmatch(name):
        return name
    return request.client.host if request.client else ""
