"""How is one request answered? What is kept, at once; other work waits for its turn in the queue.

A request that waits holds no thread, so thousands of them do not keep others from being answered.
When its page goes away it leaves the queue, and work that runs for it stops at its next step.
"""

import asyncio
import re
from collections.abc import Callable
from functools import partial

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool

from attention_atlas.names.wanted import UnwantedError
from attention_atlas.page.hosts.compress import SMALLEST, Compressor
from attention_atlas.page.hosts.refusal import PACKET, refused
from attention_atlas.page.hosts.static_files import static
from attention_atlas.page.live.answers import Answers
from attention_atlas.page.live.lane import BusyError, Ticket
from attention_atlas.page.live.queue import LaneName

PAGE_NAME = "x-atlas-page"  # the header in which a page says its own name, drawn at random
_NAME = re.compile(r"[A-Za-z0-9]{1,32}")
_GZIP = {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}

Work = Callable[[], Response]


class Sender:
    """What answers the requests for one subject; without a compressor nothing is compressed."""

    def __init__(self, answers: Answers, compressor: Compressor | None = None):
        self.answers, self.queue, self._compressor = answers, answers.queue, compressor

    async def packet(self, request: Request, path: str) -> Response:
        """Answer a request for a packet."""
        kept = self.answers.kept(path)
        if kept is not None and not self._compresses(request, kept):
            return Response(kept, media_type=PACKET)

        def work() -> Response:
            content, answered = self.answers.packet(path)
            return self._response(request, path, content, 200 if answered else 404)

        return await self._turn(request, self.answers.lane(path), work, path.partition("/")[0])

    async def action(self, request: Request, name: str, body: object) -> Response:
        """Answer a request for an action."""

        def work() -> Response:
            content, done = self.answers.perform(name, body)
            return self._response(request, "", content, 200 if done else 404)

        lane = self.answers.action_lane(name)
        if lane is None:
            return await run_in_threadpool(work)
        return await self._turn(request, lane, work, name)

    def file(self, request: Request, name: str, kind: str) -> Response:
        """Answer a request for a file of the page."""
        content = static(name).read_bytes()
        return self._response(request, f"file {name}", content, 200, kind)

    async def _turn(self, request: Request, lane: LaneName, work: Work, what: str) -> Response:
        """Let work wait for its turn and return its answer."""
        try:
            ticket = self.queue.enter(lane, work, page_of(request), what)
        except BusyError as problem:
            return refused(str(problem), 503)
        listening = asyncio.create_task(_listen(request, partial(self.queue.leave, ticket)))
        try:
            return await _answer(ticket)
        finally:
            listening.cancel()

    def _compresses(self, request: Request, content: bytes) -> bool:
        accepted = request.headers.get("accept-encoding", "")
        return self._compressor is not None and len(content) >= SMALLEST and "gzip" in accepted

    def _response(
        self, request: Request, name: str, content: bytes, status: int, kind: str = PACKET
    ) -> Response:
        if self._compressor is None or not self._compresses(request, content):
            return Response(content, status, media_type=kind)
        small = self._compressor.compress(name, content)
        return Response(small, status, headers=_GZIP, media_type=kind)


def page_of(request: Request) -> str:
    """Return the name of the page that asks, or the address of its machine."""
    name = request.headers.get(PAGE_NAME, "")
    if _NAME.fullmatch(name):
        return name
    return request.client.host if request.client else ""


async def _answer(ticket: Ticket) -> Response:
    try:
        response: Response = await asyncio.wrap_future(ticket.future)
    except UnwantedError as problem:
        return refused(str(problem), 409)
    return response


async def _listen(request: Request, gone: Callable[[], None]) -> None:
    """Call `gone` when the client closes the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    gone()
