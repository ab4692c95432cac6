"""Which tools are there? A new tool is one file and one line here."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from attention_atlas.page.agents.tools.about import about
from attention_atlas.page.agents.tools.attention import attention
from attention_atlas.page.agents.tools.edit import edit
from attention_atlas.page.agents.tools.head import head
from attention_atlas.page.agents.tools.heads import heads
from attention_atlas.page.agents.tools.inputs import inputs
from attention_atlas.page.agents.tools.map import map_tool
from attention_atlas.page.agents.tools.page import page
from attention_atlas.page.agents.tools.picture import picture
from attention_atlas.page.agents.tools.search import search
from attention_atlas.page.agents.tools.test import run_claim


@dataclass(frozen=True)
class AgentTool:
    """One row of the table of tools."""

    run: Callable[..., Any]  # takes the bench and the arguments
    title: str
    shows_page: bool = False  # a host that can shows the page inside the chat
    for_page_only: bool = False  # the page asks for it; agents do not see it


TOOLS = {
    "about": AgentTool(about, "What is in this atlas"),
    "heads": AgentTool(heads, "Heads with kinds and scores"),
    "head": AgentTool(head, "All that is known of one head"),
    "inputs": AgentTool(inputs, "Inputs and their tokens"),
    "attention": AgentTool(attention, "Where a head looks"),
    "search": AgentTool(search, "Find tokens in all inputs"),
    "map": AgentTool(map_tool, "Maps of queries and keys"),
    "picture": AgentTool(picture, "A picture and a link", shows_page=True),
    "edit": AgentTool(edit, "Edit attention, before and after"),
    "test": AgentTool(run_claim, "Test a claim, with controls"),
    "page": AgentTool(page, "Packets for the page", shows_page=True, for_page_only=True),
}
