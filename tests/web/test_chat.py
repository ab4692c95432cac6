"""The page inside a chat is the page: a scripted host shows it from its resource (MCP Apps)."""

import base64
import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from mcp_types import TextResourceContents
from PIL import Image
from playwright.sync_api import Browser, Frame, Page

from attention_atlas.page.agents.bench import AgentBench
from attention_atlas.page.agents.server import PAGE, make_server
from attention_atlas.page.hosts.launch import start
from tests.page.agents.conftest import Agent, connected

pytestmark = pytest.mark.full
PATIENCE = 60_000
# What the specification lets a host allow where a resource declares no domains.
POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; media-src 'self' data:; connect-src 'none'"
)
HOST = f"""<!doctype html><meta http-equiv="Content-Security-Policy" content="{POLICY}">
<body style="margin:0"><iframe sandbox="allow-scripts" style="border:0;width:1000px"></iframe>
<script>
  const frame = document.querySelector("iframe");
  window.heard = [];
  window.send = (message) => frame.contentWindow.postMessage({{ jsonrpc: "2.0", ...message }}, "*");
  window.show = (html, shown) => {{ window.shown = shown; frame.srcdoc = html; }};
  addEventListener("message", async ({{ data, source }}) => {{
    if (source !== frame.contentWindow) return;
    heard.push(data);
    const {{ id, method, params }} = data;
    if (method === "ui/initialize") send({{ id, result: {{ protocolVersion: "2026-01-26",
      hostInfo: {{ name: "scripted", version: "1" }}, hostCapabilities: {{ serverTools: {{}} }},
      hostContext: {{ theme: "dark", containerDimensions: {{ maxHeight: 700 }} }} }} }});
    if (method === "ui/notifications/initialized") {{
      send({{ method: "ui/notifications/tool-input", params: {{ arguments: {{}} }} }});
      send({{ method: "ui/notifications/tool-result", params: shown }});
    }}
    if (method === "ui/notifications/size-changed") frame.style.height = params.height + "px";
    if (method === "tools/call") send({{ id, result: JSON.parse(await callTool(params)) }});
  }});
</script>"""


@pytest.fixture
def agent(subjects: dict[str, Any]) -> Iterator[Agent]:
    with start([subjects["gpt"]], port=0) as running:
        server = make_server(AgentBench(subjects["gpt"], page=running.url))
        with connected(server) as connection:
            yield connection


def called(agent: Agent, params: dict[str, Any]) -> str:
    """Passes a call of the page on to the server, as a chat does."""
    result = agent.result(params["name"], **params["arguments"])
    return str(result.model_dump_json(by_alias=True))


def shown(browser: Browser, agent: Agent, told: Any) -> tuple[Page, Frame]:
    """Opens a chat that shows the page of an answer; returns the chat and the page in it."""
    (content,) = agent.do(lambda: agent.client.read_resource(PAGE)).contents
    assert isinstance(content, TextResourceContents)
    assert content.mime_type == "text/html;profile=mcp-app"
    chat = browser.new_page(viewport={"width": 1000, "height": 720})
    chat.expose_function("callTool", lambda params: called(agent, params))
    chat.set_content(HOST)
    chat.evaluate("([html, told]) => show(html, told)", [content.text, told])
    frame = chat.frames[1]
    frame.wait_for_selector("html[data-state=ready]", timeout=PATIENCE)
    return chat, frame


def test_the_page_is_shown_inside_a_chat_with_what_the_tool_showed(
    browser: Browser, agent: Agent
) -> None:
    result = agent.result("picture", view="heat", head="L2H1", input=1, token=4, png=False)
    chat, frame = shown(browser, agent, json.loads(result.model_dump_json(by_alias=True)))
    frame.wait_for_function("attentionAtlas.picks().heads[0] === 'L2H1'", timeout=PATIENCE)
    picks = frame.evaluate("attentionAtlas.picks()")
    assert (picks["view"], picks["input"], picks["token"]["position"]) == ("heat", 1, 4)
    assert frame.evaluate("document.documentElement.dataset.theme") == "dark"
    names = [each.get("method") for each in chat.evaluate("heard")]
    assert names[0] == "ui/initialize" and "ui/notifications/size-changed" in names
    asked = {each["params"]["arguments"]["path"] for each in chat.evaluate("heard")
             if each.get("method") == "tools/call"}  # fmt: skip
    assert {"about", "input/1"} <= asked
    assert len(frame.evaluate("attentionAtlas.svg()")) > 1000
    chat.evaluate(
        "send({method: 'ui/notifications/host-context-changed', params: {theme: 'light'}})"
    )
    frame.wait_for_selector("html[data-theme=light]", timeout=PATIENCE)
    chat.evaluate("send({id: 'end', method: 'ui/resource-teardown', params: {reason: 'closed'}})")
    chat.wait_for_function("heard.some(({id}) => id === 'end')", timeout=PATIENCE)
    chat.close()


def test_a_link_of_a_picture_opens_the_same_and_the_picture_is_a_png(
    browser: Browser, agent: Agent
) -> None:
    result = agent.result("picture", view="lines", head="L1H2", input=1, token=3)
    text, image = result.content
    drawn = Image.open(io.BytesIO(base64.b64decode(image.data)))
    told = json.loads(text.text)
    assert drawn.format == "PNG" and drawn.size == (told["width"], told["height"])
    colours = drawn.convert("RGB").getcolors(1 << 24)
    assert max(drawn.size) <= 1400 and colours is not None and len(colours) > 20
    assert [done for done, _ in agent.heard] == [0, 1, 2]
    page = browser.new_page(viewport={"width": 1280, "height": 860})
    page.goto(told["link"])
    page.wait_for_selector("html[data-state=ready]", timeout=PATIENCE)
    picks = page.evaluate("attentionAtlas.picks()")
    assert {name: picks[name] for name in told["picks"]} == told["picks"]
    page.close()
