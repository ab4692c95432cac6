"""Agents get small typed answers from the folder alone, and sentences where there are none."""

import json
from typing import Any

import numpy as np
import pytest

import attention_atlas as aa
from attention_atlas.page.agents.answer import CHARACTERS, MOST_TOKENS, Answer, fit, text_of
from attention_atlas.page.agents.table import TOOLS
from tests.page.agents.conftest import Agent

FOR_AGENTS = [name for name, tool in TOOLS.items() if not tool.for_page_only]
# What is right for each tool; the answers are those of its defaults.
RIGHT: dict[str, dict[str, Any]] = {
    "about": {}, "heads": {}, "head": {"head": "L1H1"}, "inputs": {}, "map": {},
    "attention": {"head": "L1H1"}, "search": {"text": "the"}, "picture": {"png": False},
}  # fmt: skip


def test_ten_tools_are_listed_with_what_they_take_and_give(agent: Agent) -> None:
    tools = {tool.name: tool for tool in agent.do(agent.client.list_tools).tools}
    assert set(tools) == {*FOR_AGENTS, "page"} and len(FOR_AGENTS) == 10
    for name in FOR_AGENTS:
        assert tools[name].description and tools[name].output_schema
        assert "bench" not in tools[name].input_schema.get("properties", {})
        hints = tools[name].annotations
        assert hints is not None and hints.read_only_hint


def test_the_page_is_linked_to_a_tool_and_its_packets_are_for_it_alone(agent: Agent) -> None:
    tools = {tool.name: tool for tool in agent.do(agent.client.list_tools).tools}
    assert tools["picture"].meta == {
        "ui": {"resourceUri": "ui://attention-atlas/page.html", "visibility": ["model", "app"]}
    }
    assert (tools["page"].meta or {})["ui"]["visibility"] == ["app"]
    (listed,) = agent.do(agent.client.list_resources).resources
    assert listed.mime_type == "text/html;profile=mcp-app"


@pytest.mark.parametrize("tool", RIGHT)
def test_an_answer_of_defaults_has_at_most_4000_tokens(agent: Agent, tool: str) -> None:
    text = agent.result(tool, **RIGHT[tool]).content[0].text
    assert len(text) / 3 <= 4000
    assert CHARACTERS == 3 and MOST_TOKENS == 4000


def test_a_long_list_is_cut_and_says_so() -> None:
    class Long(Answer):
        rows: list[str]

    short = fit(Long(rows=["x" * 100] * 1000))
    assert len(text_of(short)) <= 12_000 and len(short.rows) > 80
    gone = 1000 - len(short.rows)
    assert short.more[0].startswith(f"the last {gone} of 1000 rows are left out to stay below 4000")


def test_the_largest_answers_stay_small_too(agent: Agent) -> None:
    names = agent.ask("heads")["all_scores"]
    for result in (
        agent.result("heads", limit=200, scores=names[:20]),
        agent.result("attention", head="L0H0", limit=500),
    ):
        assert not result.is_error and len(result.content[0].text) <= 12_000
        assert json.loads(result.content[0].text)["more"]


def test_what_is_left_out_is_got_by_asking_further(agent: Agent) -> None:
    first = agent.ask("heads", limit=5)
    assert first["more"] == [f"heads 0 to 4 of {first['total']}; ask with start=5 for others"]
    second = agent.ask("heads", limit=5, start=5)
    names = [line["head"] for line in first["heads"] + second["heads"]]
    assert names == [f"L0H{h}" for h in range(6)] + [f"L1H{h}" for h in range(4)]


def test_about_says_what_is_here(agent: Agent, mapped_gpt: aa.Atlas) -> None:
    told = agent.ask("about")
    manifest = json.loads((mapped_gpt.path / "atlas.json").read_text("utf-8"))
    assert told["model"] == "builtin:gpt" and told["inputs"] == 2 and told["heads"] == 36
    assert told["tokens"] == len(mapped_gpt.tokens()) and told["maps"] == ["pca-2d"]
    errors = [layer["weights_error"] for layer in manifest["receipt"]["layers"]]
    assert told["exact"] and told["worst_error"] == pytest.approx(max(errors), rel=1e-3)
    assert not told["can_edit"] and "--model" in told["why_not_edit"]


def test_rows_and_rest_add_up_to_the_whole_row(agent: Agent, mapped_gpt: aa.Atlas) -> None:
    told = agent.ask("attention", head="L2H3", input=1, token=7, limit=3)
    row = mapped_gpt.weights(1, "L2H3")[7].astype(float)
    best = np.sort(row)[::-1][:3]
    assert [link["weight"] for link in told["links"]] == pytest.approx(best, rel=1e-3)
    assert told["listed"] + told["rest"] == pytest.approx(row.sum(), rel=1e-3)


def test_a_packet_of_the_page_is_that_of_a_served_page(agent: Agent, mapped_gpt: aa.Atlas) -> None:
    import base64

    from attention_atlas.page.live.answers import Answers

    packet = agent.ask("page", path="input/0")["packet"]
    assert base64.b64decode(packet) == Answers(mapped_gpt).packet("input/0")[0]


def test_without_a_model_nothing_is_edited_and_one_sentence_says_what_to_do(agent: Agent) -> None:
    edits = [{"edit": "ablate", "heads": ["L0H0"]}]
    for sentence in (agent.refused("edit", edits=edits), agent.refused("test", test="bias")):
        assert sentence.endswith("attention-atlas mcp gpt.atlas --model builtin:gpt")


HUGE = 10**30
MARKUP = "<img src=x onerror=alert(1)>"
HOSTILE: list[tuple[str, dict[str, Any], str]] = [
    ("attention", {"head": "L99H0"}, "has no layer 99"),
    ("attention", {"head": "L0H99"}, "has no head 99; it has 0 to 5"),
    ("attention", {"head": MARKUP}, "no head is named"),
    ("attention", {"head": "L0H0", "input": 7}, "there is no input 7; there are 0 to 1"),
    ("attention", {"head": "L0H0", "input": HUGE}, "less than or equal to"),
    ("attention", {"head": "L0H0", "token": 500}, "it has 0 to"),
    ("attention", {"head": "L0H0", "token": -1}, "greater than or equal to 0"),
    ("attention", {"head": "L0H0", "limit": 0}, "greater than or equal to 1"),
    ("attention", {"head": "L0H0", "what": "soul"}, "should be 'weights'"),
    ("attention", {"head": ["L0H0"]}, "should be a valid string"),
    ("attention", {}, "attention lacks 'head'; give it"),
    ("attention", {"head": "L0H0", "path": "/etc/passwd"}, "has no argument 'path'; it takes head"),
    ("head", {"head": "../../etc/passwd"}, "no head is named"),
    ("head", {"head": "L0H0", "explain": MARKUP}, "no score is named"),
    ("heads", {"sort": "beauty"}, "no score is named 'beauty'"),
    ("heads", {"kind": "round"}, "should be 'parallel'"),
    ("heads", {"scores": [HUGE]}, "should be a valid string"),
    ("heads", {"limit": HUGE}, "less than or equal to 200"),
    ("inputs", {"input": 99}, "there is no input 99"),
    ("inputs", {"input": 0, "stream": "../x"}, "no stream is named"),
    ("inputs", {"containing": "x" * 5000}, "at most 200"),
    ("map", {"map": "/etc/passwd"}, "no map is named '/etc/passwd'; there is pca-2d"),
    ("map", {"head": "L0H0", "token": 400}, "it has 0 to"),
    ("picture", {"view": "soul"}, "should be 'lines'"),
    ("picture", {"input": 9, "png": False}, "there is no input 9"),
    ("picture", {"view": "image", "png": False}, "needs an atlas of pictures"),
    ("search", {"text": ""}, "at least 1"),
    ("search", {"text": "·"}, "there is nothing to look for"),
    ("test", {"test": "/etc/passwd"}, "no model is attached"),
    ("nothing", {}, "no tool is named 'nothing'; there is about"),
]  # fmt: skip


@pytest.mark.parametrize(("tool", "asked", "words"), HOSTILE)
def test_what_cannot_be_answered_ends_in_one_sentence(
    agent: Agent, tool: str, asked: dict[str, Any], words: str
) -> None:
    sentence = agent.refused(tool, **asked)
    assert words in sentence
    assert "\n" not in sentence and "Traceback" not in sentence and len(sentence) <= 600


def test_anything_at_all_is_answered_or_refused_in_words(agent: Agent) -> None:
    import random

    from tests.page.hostile import VALUES

    draw = random.Random(0)
    tools = {tool.name: tool for tool in agent.do(agent.client.list_tools).tools}
    values = [value for value in VALUES if value != "\ud800"]  # which no JSON can hold
    for _ in range(150):
        name = draw.choice([*RIGHT, "edit", "test", "page"])
        taken = list(tools[name].input_schema["properties"]) if name != "about" else []
        asked = {**RIGHT.get(name, {}), **{each: draw.choice(values) for each in taken
                                           if draw.random() < 0.4}}  # fmt: skip
        if name == "picture":
            asked["png"] = False
        text = agent.result(name, **asked).content[0].text
        assert "Traceback" not in text and "could not answer" not in text, (name, asked, text)
        assert len(text) <= 12_000


def test_a_link_names_what_the_picture_shows(agent: Agent) -> None:
    told = agent.ask("picture", view="heat", head="L2H1", input=1, token=4, png=False)
    start, _, picks = told["link"].partition("#")
    assert start == "http://127.0.0.1:8642/" and "attention-atlas serve" in told["how_to_open"]
    assert "view=heat" in picks and "heads=L2H1" in picks and "input=1" in picks
    assert told["picks"]["token"] == {"side": "query", "position": 4}
