"""How does the page inside a chat get its data? The same packets that a served page gets."""

import base64
import json
from typing import Annotated, Any

from mcp_types import CallToolResult, TextContent
from pydantic import BaseModel, Field

from attention_atlas.names.errors import InputError
from attention_atlas.page.agents.bench import AgentBench

LARGEST_BODY = 200_000  # characters of an action, as a served page may send


class PagePacket(BaseModel):
    """A packet of the page's own format, as base64; a sentence of refusal is a packet too."""

    packet: str


def page(
    bench: AgentBench,
    path: Annotated[str, Field(max_length=400, description="The path of a packet, or an action.")],
    body: Annotated[
        dict[str, Any] | None, Field(description="What the action is sent; none: a packet.")
    ] = None,
) -> Annotated[CallToolResult, PagePacket]:
    """Give the page inside the chat a packet, or do an action for it. Not meant for agents."""
    if body is None:
        content, _ = bench.answers.packet(path)
    else:
        if len(json.dumps(body)) > LARGEST_BODY:
            raise InputError(f"this action is too large; send at most {LARGEST_BODY} characters")
        content, _ = bench.answers.perform(path, body)
    told = PagePacket(packet=base64.b64encode(content).decode())
    words = f"{len(content)} bytes for the page inside the chat"
    return CallToolResult(
        content=[TextContent(type="text", text=words)], structured_content=told.model_dump()
    )
