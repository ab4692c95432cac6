"""How are the page and its packets served over HTTP?

    /            the page          /api/about …            its packets     POST /api/add …
    /1/          a second atlas    /1/api/about …

The server sends only the files that are named here and the packets that `answers` makes; it never
opens a path from a request.
"""

import asyncio
import json
import logging
import threading
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.middleware.gzip import GZipMiddleware
from fastapi.responses import FileResponse

from attention_atlas.names.wanted import while_wanted
from attention_atlas.page.answers.subject import Subject
from attention_atlas.page.hosts.guard import COOKIE, HEADERS, Guard, is_own
from attention_atlas.page.hosts.static_files import SERVED, static
from attention_atlas.page.live.answers import Answers, Models, make_answers
from attention_atlas.page.wire.packing import Failure, pack

PACKET = "application/octet-stream"
LARGEST_BODY = 200_000
_log = logging.getLogger("attention_atlas")


def make_app(
    subjects: Sequence[Subject], guard: Guard | None = None, models: Models = ()
) -> FastAPI:
    """Make the server of several subjects; the first is at /, subject i at /i/.

    A page can add texts where its subject has a live model.
    """
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    app.state.answers = make_answers(subjects, models)
    _add_guard(app, guard or Guard())
    for number, answers in enumerate(app.state.answers):
        if number == 0:  # it has one address only, since links between pages are relative
            app.include_router(_routes(answers))
            app.add_api_route("/0/", lambda: Response(status_code=307, headers={"Location": "../"}))
        app.include_router(_routes(answers), prefix=f"/{number}")
    app.add_api_route("/{path:path}", _no_page, methods=["GET", "POST"])
    return app


def _no_page() -> Response:
    return _refused("there is no such page; open /", 404)


def _add_guard(app: FastAPI, rules: Guard) -> None:
    """Check every request, and add the security headers to every answer."""
    if rules.token:  # over a network, compressing saves more time than it takes
        app.add_middleware(GZipMiddleware, minimum_size=10_000, compresslevel=1)

    @app.middleware("http")
    async def guarded(
        request: Request, call_next: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        response = _refusal(request, rules) or await _safely(request, call_next)
        response.headers.update(HEADERS)
        if rules.token and request.query_params.get("token") and response.status_code < 400:
            response.set_cookie(COOKIE, rules.token, httponly=True, samesite="strict")
        return response


def _routes(answers: Answers) -> APIRouter:
    """Make the routes of one subject: its page, its packets and its actions."""
    router = APIRouter()

    @router.get("/")
    def page() -> Response:
        return FileResponse(static("page.html"), media_type="text/html; charset=utf-8")

    @router.get("/api/{path:path}")
    async def packet(path: str, request: Request) -> Response:
        content, answered = await _while_connected(request, partial(answers.packet, path))
        return Response(content, 200 if answered else 404, media_type=PACKET)

    @router.post("/api/{name}")
    async def action(name: str, request: Request) -> Response:
        try:
            body = await _body(request)
        except ValueError as problem:
            return _refused(str(problem), 400)
        content, done = await run_in_threadpool(answers.perform, name, body)
        return Response(content, 200 if done else 404, media_type=PACKET)

    @router.get("/{name}")
    def asset(name: str) -> Response:
        if name not in SERVED:
            return _no_page()
        return FileResponse(static(name), media_type=SERVED[name])

    return router


async def _while_connected(
    request: Request, answer: Callable[[], tuple[bytes, bool]]
) -> tuple[bytes, bool]:
    """Return the answer of another thread; a long one stops when its page asks no more."""
    gone = threading.Event()

    async def listen() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        gone.set()

    listening = asyncio.create_task(listen())
    try:
        with while_wanted(lambda: not gone.is_set()):
            return await run_in_threadpool(answer)
    finally:
        listening.cancel()


def _refusal(request: Request, rules: Guard) -> Response | None:
    if not rules.knows_host(request.headers.get("host")):
        return _refused("this server has another name; use the link that was printed", 421)
    if not rules.admits(request.query_params.get("token"), request.headers.get("cookie")):
        return _refused("the token is missing in this link; use the link that was printed", 403)
    headers = request.headers
    if request.method != "GET" and not is_own(
        headers.get("origin"), headers.get("sec-fetch-site"), headers.get("host")
    ):
        return _refused("pages of other sites may not send actions here", 403)
    return None


async def _body(request: Request) -> object:
    """Read the JSON of a request. The type is checked: other sites cannot send it as JSON."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise ValueError("send JSON with Content-Type: application/json")
    sent = b""
    async for piece in request.stream():
        sent += piece
        if len(sent) > LARGEST_BODY:
            raise ValueError(f"the request is too large; send at most {LARGEST_BODY} bytes")
    try:
        return json.loads(sent)
    except (ValueError, RecursionError):
        raise ValueError("the request is not valid JSON") from None


async def _safely(
    request: Request, call_next: Callable[[Request], Awaitable[Response]]
) -> Response:
    """Answer a request; an unexpected error becomes an answer, so that the server goes on."""
    try:
        return await call_next(request)
    except Exception:
        _log.exception("a request failed: %s", request.url.path)
        return _refused("this request failed; the server's log says why", 500)


def _refused(why: str, status: int) -> Response:
    return Response(pack(Failure(why)), status, media_type=PACKET)
