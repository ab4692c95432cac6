"""How do agents reach the tools? Over the Model Context Protocol, with errors as sentences.

A tool runs in a thread of its own, so that others are answered meanwhile; what it counts is sent as
progress, and it stops when its caller gives it up.
"""

import asyncio
import inspect
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from importlib.metadata import version
from typing import Annotated, Any

import anyio
from mcp.server import MCPServer
from mcp.server.apps import APP_MIME_TYPE, Apps
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ResourceError, ToolError
from mcp.server.mcpserver.resources import FunctionResource
from mcp_types import CallToolResult, InputRequiredResult, TextContent, ToolAnnotations
from pydantic import ValidationError

from attention_atlas.names.arguments import shown
from attention_atlas.names.errors import AtlasError
from attention_atlas.names.progress import Watcher, watched
from attention_atlas.names.wanted import while_wanted
from attention_atlas.page.agents.answer import Answer, cut, fit, text_of
from attention_atlas.page.agents.bench import AgentBench
from attention_atlas.page.agents.table import TOOLS, AgentTool
from attention_atlas.page.hosts.static_files import static
from attention_atlas.page.live.in_words import in_words

PAGE = "ui://attention-atlas/page.html"
LONGEST = 600  # characters of a refusal
_PATIENCE = 10.0  # seconds until a caller must have taken a count
INSTRUCTIONS = (
    "An atlas holds the attention of one model over some inputs. Call about first: it says what is "
    "here, how exact it is and how to read it. Then heads or search to find something, head and "
    "attention to look at it, picture to show it, and edit or test to see what it does. Answers "
    "are short; their field more says what was left out and how to get it."
)
_log = logging.getLogger("attention_atlas")


class AtlasServer(MCPServer[Any]):
    """The tools of one atlas; a refused call is answered by one sentence."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool; return its answer, or the sentence that says why there is none."""
        given_up = threading.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(_note_end, given_up)
            with watched(_teller(name, context)), while_wanted(lambda: not given_up.is_set()):
                try:
                    _check_names(name, arguments)
                    result = await super().call_tool(name, arguments, context)
                except ToolError as problem:
                    text = TextContent(type="text", text=cut(_sentence(name, problem), LONGEST))
                    result = CallToolResult(content=[text], is_error=True)
            group.cancel_scope.cancel()
        return result


def make_server(bench: AgentBench) -> AtlasServer:
    """Make the server of one atlas: its tools, and the page as a resource for chats."""
    apps = Apps()
    apps.add_resource(
        FunctionResource(
            uri=PAGE, name="Attention Atlas", mime_type=APP_MIME_TYPE, fn=_page,
            description="The page of this atlas inside the chat.",
            meta={"ui": {"prefersBorder": True}},
        )
    )  # fmt: skip
    for name, tool in TOOLS.items():
        if tool.shows_page:
            visible = ["app"] if tool.for_page_only else ["model", "app"]
            apps.tool(resource_uri=PAGE, visibility=visible, **_about(name, tool))(  # type: ignore[arg-type]
                _bound(tool, bench)
            )
    server = AtlasServer(
        "attention-atlas", title="Attention Atlas", instructions=INSTRUCTIONS,
        version=version("attention-atlas"), extensions=[apps], log_level="ERROR",
    )  # fmt: skip
    for name, tool in TOOLS.items():
        if not tool.shows_page:
            server.add_tool(_bound(tool, bench), **_about(name, tool))
    return server


def _page() -> str:
    """Return the page for chats; a ResourceError says that it is not built."""
    try:
        return static("app.html").read_text("utf-8")
    except AtlasError as problem:
        raise ResourceError(str(problem)) from problem


def _about(name: str, tool: AgentTool) -> dict[str, Any]:
    return {
        "name": name,
        "title": tool.title,
        "description": inspect.getdoc(tool.run),
        "annotations": ToolAnnotations(
            title=tool.title, read_only_hint=True, destructive_hint=False, idempotent_hint=True,
            open_world_hint=False,
        ),
    }  # fmt: skip


def _bound(tool: AgentTool, bench: AgentBench) -> Callable[..., Any]:
    """Return a tool with its bench, and with the signature of the other arguments."""
    signature = inspect.signature(tool.run)
    answer = signature.return_annotation

    @wraps(tool.run)
    def run(**asked: Any) -> Any:
        told = tool.run(bench, **asked)
        if not isinstance(told, Answer):  # it holds more than text, and fits itself
            return told
        fitting = fit(told)
        return CallToolResult(
            content=[TextContent(type="text", text=text_of(fitting))],
            structured_content=fitting.model_dump(mode="json"),
        )

    if isinstance(answer, type) and issubclass(answer, Answer):
        answer = Annotated[CallToolResult, answer]
    others = [each for name, each in signature.parameters.items() if name != "bench"]
    run.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=others, return_annotation=answer
    )
    return run


def _check_names(name: str, arguments: dict[str, Any]) -> None:
    """Refuse a tool or an argument that there is not."""
    if name not in TOOLS:
        raise ToolError(f"no tool is named {cut(name, 60)!r}; there is {', '.join(TOOLS)}")
    taken = [each for each in inspect.signature(TOOLS[name].run).parameters if each != "bench"]
    unknown = [each for each in arguments if each not in taken]
    if unknown:
        takes = ", ".join(taken) or "nothing"
        raise ToolError(f"{name} has no argument {cut(unknown[0], 60)!r}; it takes {takes}")


def _sentence(name: str, problem: Exception) -> str:
    """Return what is wrong as one sentence; what nobody foresaw goes to the log."""
    cause = problem.__cause__
    if cause is None:
        return str(problem)
    if isinstance(cause, ValidationError):
        return _wrong_value(name, cause)
    known = in_words(cause)
    if known is not None:
        return " ".join(str(known).split())
    _log.error("the tool %s could not answer", name, exc_info=cause)
    return f"{name} could not answer this ({type(cause).__name__}); the log of the server says more"


def _wrong_value(name: str, problem: ValidationError) -> str:
    first = problem.errors(include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    if first["type"] == "missing":
        return f"{name} lacks {cut(place, 80)!r}; give it"
    said = first["msg"].removeprefix("Input ").removeprefix("Value error, ")
    return f"{cut(place, 80)!r} of {name} is {shown(first['input'])}; it {said}"


def _teller(name: str, context: Context[Any, Any] | None) -> Watcher:
    """Return what sends the counts of a tool to its caller; any thread but this one may call it."""
    loop, sent = asyncio.get_running_loop(), -1

    def tell(done: int, total: int) -> None:
        nonlocal sent
        if context is None or done <= sent:  # progress may only grow
            return
        sent = done
        told = context.report_progress(done, total, f"{name}: {done} of {total}")
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(told, loop).result(_PATIENCE)

    return tell


async def _note_end(given_up: threading.Event) -> None:
    """Wait until the call ends or is given up; in a thread of its own a tool cannot hear that."""
    try:
        await anyio.sleep_forever()
    finally:
        given_up.set()
