"""A server of tools over a small atlas, and a client of the SDK that calls them."""

import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client

import attention_atlas as aa
from attention_atlas.page.agents.bench import AgentBench
from attention_atlas.page.agents.server import make_server
from tests import atlases
from tests.made_once import MadeOnce

T = TypeVar("T")


@dataclass
class Agent:
    """Calls tools as an agent does, by the SDK's own client."""

    client: Client
    portal: BlockingPortal
    heard: list[tuple[float, float | None]] = field(default_factory=list)

    def do(self, call: Callable[[], Awaitable[T]]) -> T:
        return self.portal.call(call)

    def result(self, tool: str, **asked: Any) -> Any:
        """Calls a tool; its progress is kept in `heard`."""
        self.heard.clear()

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            self.heard.append((progress, total))

        return self.do(lambda: self.client.call_tool(tool, asked, progress_callback=hear))

    def ask(self, tool: str, **asked: Any) -> dict[str, Any]:
        """Calls a tool that must answer; returns the answer, which its text says too."""
        result = self.result(tool, **asked)
        assert not result.is_error, result.content[0].text
        told: dict[str, Any] = result.structured_content
        if tool != "page":
            assert json.loads(result.content[0].text) == told
        return told

    def refused(self, tool: str, **asked: Any) -> str:
        """Calls a tool that must refuse; returns its sentence."""
        result = self.result(tool, **asked)
        assert result.is_error, result.structured_content
        (content,) = result.content
        assert isinstance(content.text, str)
        return content.text


@contextmanager
def connected(server: Any, **options: Any) -> Iterator[Agent]:
    """Connects a client to a server, in this process or as a command."""
    with start_blocking_portal() as portal:
        client = Client(server, **options)
        with portal.wrap_async_context_manager(client):
            yield Agent(client, portal)


def mapped(folder: Any) -> aa.Atlas:
    atlas = atlases.gpt(folder)
    atlas.layout("pca", progress=False)
    return atlas


@pytest.fixture(scope="session")
def mapped_gpt(made_once: MadeOnce) -> aa.Atlas:
    return aa.open(made_once("mapped-gpt", mapped) / "gpt.atlas")


@pytest.fixture(scope="session")
def agent(mapped_gpt: aa.Atlas) -> Iterator[Agent]:
    """An agent without a model."""
    with connected(make_server(AgentBench(mapped_gpt))) as connection:
        yield connection
