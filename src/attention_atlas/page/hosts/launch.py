"""How is the server started and opened in a browser?"""

import socket
import threading
import time
import webbrowser
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial

import uvicorn
from fastapi import FastAPI

from attention_atlas.models.threads import beside_others, matrix_threads
from attention_atlas.names.errors import InputError
from attention_atlas.page.answers.subject import Subject
from attention_atlas.page.hosts.app import make_app
from attention_atlas.page.hosts.connections import BACKLOG, Connection
from attention_atlas.page.hosts.few_lines import few_lines
from attention_atlas.page.hosts.guard import Guard
from attention_atlas.page.hosts.static_files import static
from attention_atlas.page.live.answers import Models
from attention_atlas.page.wire.about import StoryStep

_USUAL = 8642
_KEPT_OPEN = 75  # seconds; longer than clients keep them, whose next request would meet the end
_PATIENCE = 20.0  # seconds until a started server must answer


@dataclass
class Running:
    """A server that runs in its own thread."""

    url: str
    _server: uvicorn.Server
    _thread: threading.Thread
    _ending: ExitStack

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._ending.close()

    def __enter__(self) -> "Running":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def start(
    subjects: Sequence[Subject],
    host: str = "127.0.0.1",
    port: int | None = None,
    models: Models = (),
    read_only: bool = False,
    story: Sequence[StoryStep] = (),
) -> Running:
    """Serve in the background; return the server once it answers."""
    server, listener, url, ending = _prepared(subjects, host, port, models, read_only, story)
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    end = time.monotonic() + _PATIENCE
    while not server.started:
        if not thread.is_alive() or time.monotonic() > end:
            ending.close()
            raise InputError(f"the server at {host} did not start; try another --host or --port")
        time.sleep(0.01)
    return Running(url, server, thread, ending)


def serve(
    subjects: Sequence[Subject],
    host: str = "127.0.0.1",
    port: int | None = None,
    *,
    browser: bool = True,
    say: Callable[[str], None] = print,
    models: Models = (),
    read_only: bool = False,
    story: Sequence[StoryStep] = (),
) -> None:
    """Serve until interrupted; print the address and open it in a browser."""
    server, listener, url, ending = _prepared(subjects, host, port, models, read_only, story)
    say(f"open {url}" + ("" if browser else " in a browser") + " (Ctrl-C stops)")
    if browser:
        threading.Timer(0.5, webbrowser.open, [url]).start()
    with ending, suppress(KeyboardInterrupt):
        server.run([listener])


def _prepared(
    subjects: Sequence[Subject],
    host: str,
    port: int | None,
    models: Models,
    read_only: bool,
    story: Sequence[StoryStep],
) -> tuple[uvicorn.Server, socket.socket, str, ExitStack]:
    """Return a server, its socket, its link, and what is to be ended after it."""
    static("page.html")  # fails now if the page is not built
    guard = Guard.of(host)
    app = make_app(subjects, guard, models, read_only, story)
    listener = _listen(host, port)
    config = uvicorn.Config(
        app, log_level="error", access_log=False, lifespan="off", server_header=False,
        http=Connection, ws="none", loop="asyncio", backlog=BACKLOG, timeout_keep_alive=_KEPT_OPEN,
    )  # fmt: skip
    ending = ExitStack()
    ending.callback(listener.close)
    ending.enter_context(few_lines())
    ending.enter_context(matrix_threads(beside_others()))
    ending.callback(partial(_stop_work, app))
    app.state.senders[0].begin()
    return uvicorn.Server(config), listener, _link(guard, listener), ending


def _stop_work(app: FastAPI) -> None:
    """Stop all work; a map stops after its current head and can be resumed."""
    for answers in app.state.answers:
        answers.queue.close()


def _link(guard: Guard, listener: socket.socket) -> str:
    wildcard = guard.host in ("0.0.0.0", "::")  # noqa: S104  compared with, not bound to
    name = socket.gethostname() if wildcard else guard.host
    shown = f"[{name}]" if ":" in name else name
    token = f"?token={guard.token}" if guard.token else ""
    return f"http://{shown}:{listener.getsockname()[1]}/{token}"


def _listen(host: str, port: int | None) -> socket.socket:
    """Return a bound socket; without a port, at the usual port or else any free one."""
    for candidate in (_USUAL, 0) if port is None else (port,):
        try:
            return _bound(host, candidate)
        except OSError as problem:
            if candidate != _USUAL or port is not None:
                raise InputError(
                    f"cannot listen at {host}:{candidate} ({problem.strerror or problem}); "
                    "give another --host or --port"
                ) from problem
    raise AssertionError("port 0 either binds or raises")


def _bound(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError, OverflowError) as problem:
        raise OSError(None, f"no address: {problem}") from problem
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError:
        listener.close()
        raise
    return listener
