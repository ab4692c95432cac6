"""Where are the rules of a server applied? Around every request, before anything else sees it."""

import logging

from fastapi import Request, Response
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from attention_atlas.page.hosts.guard import Guard, headers, is_own
from attention_atlas.page.hosts.refusal import refused

_log = logging.getLogger("attention_atlas")


class Guarded:
    """An application that refuses what the rules forbid, and whose errors become answers."""

    def __init__(self, app: ASGIApp, guard: Guard, early: bytes):
        self.app, self.guard, self._headers = app, guard, headers(early)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        if scope["type"] != "http":  # a web socket: there are none here
            return await send({"type": "websocket.close", "code": 1008})
        request, begun = Request(scope), False

        async def sent(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                message = {**message, "headers": list(message["headers"])}
                self._add_headers(request, message)
            await send(message)

        try:
            answer: ASGIApp = self._refusal(request) or self.app
            await answer(scope, receive, sent)
        except Exception:
            # `%r` keeps line ends out of the log.
            _log.exception("a request failed: %r", request.url.path[:200])
            if not begun:
                sorry = refused("this request failed; the server's log says why", 500)
                await sorry(scope, receive, sent)
        return None

    def _refusal(self, request: Request) -> Response | None:
        headers, guard = request.headers, self.guard
        if not guard.knows_host(headers.get("host")):
            return refused("this server has another name; use the link that was printed", 421)
        if not guard.admits(request.query_params.get("token"), headers.get("cookie")):
            return refused("the token is missing in this link; use the link that was printed", 403)
        if request.method != "GET" and not is_own(
            headers.get("origin"), headers.get("sec-fetch-site"), headers.get("host")
        ):
            return refused("pages of other sites may not send actions here", 403)
        return None

    def _add_headers(self, request: Request, start: Message) -> None:
        sent = MutableHeaders(scope=start)
        sent.update(self._headers)
        token = self.guard.token
        if token and request.query_params.get("token") and start["status"] < 400:
            sent.append(
                "set-cookie", f"{self.guard.cookie}={token}; HttpOnly; Path=/; SameSite=strict"
            )
