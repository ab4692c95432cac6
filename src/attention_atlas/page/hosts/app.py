"""How are the page and its packets served over HTTP?

    /            the page          /api/about …            its packets     POST /api/add …
    /1/          a second atlas    /1/api/about …

The server sends only the files that are named here and the packets that `answers` makes; it never
opens a path from a request.
"""

import json
from collections.abc import Sequence

from fastapi import APIRouter, FastAPI, Request, Response

from attention_atlas.page.answers.subject import Subject
from attention_atlas.page.hosts.compress import Compressor
from attention_atlas.page.hosts.guard import Guard
from attention_atlas.page.hosts.guarded import Guarded
from attention_atlas.page.hosts.page_html import early_script
from attention_atlas.page.hosts.refusal import refused
from attention_atlas.page.hosts.sender import Sender
from attention_atlas.page.hosts.static_files import SERVED
from attention_atlas.page.live.answers import Models, make_answers
from attention_atlas.page.wire.about import StoryStep

LARGEST_BODY = 200_000


def make_app(
    subjects: Sequence[Subject],
    guard: Guard | None = None,
    models: Models = (),
    read_only: bool = False,
    story: Sequence[StoryStep] = (),
) -> FastAPI:
    """Make the server of several subjects; the first is at /, subject i at /i/.

    A page can add texts where its subject has a live model. The page of the first tells the story.
    """
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    app.state.answers = make_answers(subjects, models, read_only, story)
    guard = guard or Guard()
    app.add_middleware(Guarded, guard=guard, early=early_script())
    app.state.senders = [
        Sender(answers, Compressor() if guard.token else None) for answers in app.state.answers
    ]
    for number, sender in enumerate(app.state.senders):
        if number == 0:  # it has one address only, since links between pages are relative
            app.include_router(_routes(sender))
            app.add_api_route("/0/", lambda: Response(status_code=307, headers={"Location": "../"}))
        app.include_router(_routes(sender), prefix=f"/{number}")
    app.add_api_route("/{path:path}", _no_page, methods=["GET", "POST"])
    app.add_exception_handler(404, lambda _request, _problem: _no_page())
    app.add_exception_handler(405, lambda _request, _problem: _no_method())
    return app


def _no_page() -> Response:
    return refused("there is no such page; open /", 404)


def _no_method() -> Response:
    return refused("this address is only read, with GET; actions are sent with POST", 405)


def _routes(sender: Sender) -> APIRouter:
    """Make the routes of one subject: its page, its packets and its actions."""
    router = APIRouter()

    @router.get("/")
    def page(request: Request) -> Response:
        return sender.page(request)

    @router.get("/api/{path:path}")
    async def packet(path: str, request: Request) -> Response:
        return await sender.packet(request, path)

    @router.post("/api/{name}")
    async def action(name: str, request: Request) -> Response:
        try:
            body = await _body(request)
        except ValueError as problem:
            return refused(str(problem), 400)
        return await sender.action(request, name, body)

    @router.get("/{name}")
    def asset(name: str, request: Request) -> Response:
        return sender.file(request, name, SERVED[name]) if name in SERVED else _no_page()

    return router


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
