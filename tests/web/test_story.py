"""The first minute of the demo: five steps, walked by keys alone, each a real state of the page."""

import re
from collections.abc import Iterator
from dataclasses import fields
from typing import Any
from urllib.parse import parse_qs

import pytest
from playwright.sync_api import Browser, Page, expect

from attention_atlas.page.hosts.demo_story import DEMO_STORY
from attention_atlas.page.hosts.launch import start
from attention_atlas.page.live.answers import make_answers
from attention_atlas.page.live.model import LiveModel
from attention_atlas.page.wire.packing import unpack
from attention_atlas.page.wire.picks import Picks
from attention_atlas.studies.demo import MODELS, demo_atlases, sentences
from tests.web.axe import violations
from tests.web.conftest import PATIENCE
from tests.web.maps import eventually, picks

PATIENT = 4 * PATIENCE  # the first measuring and the first edit


@pytest.fixture(scope="module")
def demo(built: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the demo, as its command starts it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        atlases = demo_atlases()
    models = [LiveModel(name) for name in MODELS]
    with start(atlases, port=0, models=models, story=DEMO_STORY) as running:
        yield running.url


def test_the_story_names_states_that_the_page_has() -> None:
    known = {field.name for field in fields(Picks)}
    assert len(DEMO_STORY) == 5
    for step in DEMO_STORY:
        assert set(parse_qs(step.picks)) <= known
    tabs = [parse_qs(step.picks)["tab"][0] for step in DEMO_STORY]
    assert tabs == ["map", "map", "text", "heads", "lab"]
    assert sentences()[92]["text"].count("Sarah Miller") == 2


def test_only_the_first_page_of_the_demo_has_the_story(subjects: dict[str, Any]) -> None:
    atlases = [subjects["gpt"], subjects["bert"]]
    told = [
        unpack(each.packet("about")[0])["story"] for each in make_answers(atlases, story=DEMO_STORY)
    ]
    assert [len(story) for story in told] == [5, 0]
    plain = unpack(make_answers(atlases)[0].packet("about")[0])
    assert plain["story"] == []


@pytest.mark.full
def test_the_story_is_walked_by_keys_alone(page: Page, demo: str) -> None:
    page.goto(demo)
    page.wait_for_selector("html[data-state=ready]", timeout=PATIENT)
    story = page.get_by_test_id("story")
    expect(page.get_by_test_id("hints")).to_have_count(0)
    seen = {
        0: "map-canvas",
        1: "sentence-view",
        2: "head-panel",
        3: "card",
        4: "verdict",
    }
    for number, step in enumerate(DEMO_STORY):
        expect(story).to_have_attribute("data-step", str(number))
        expect(page.get_by_test_id("story-text")).to_contain_text(step.title)
        expect(page.get_by_test_id(seen[number]).first).to_be_visible(timeout=PATIENT)
        wanted = {name: values[0] for name, values in parse_qs(step.picks).items()}
        state = picks(page)
        assert state["tab"] == wanted["tab"]
        assert state["input"] == int(wanted.get("input", 0))
        if number:
            assert state["heads"] == ["L4H5"]
            eventually(page, lambda: "input=92" in page.url)
        assert violations(page) == []
        if number == 2:
            # What the text says: the second “M” looks at “ill” most.
            told = page.get_by_test_id("key-0-5")
            assert float(told.get_attribute("data-weight") or 0) > 0.5
        if number == 4:
            # And in the Lab “ill” falls from almost certain to under a half.
            row = page.locator(".aa-paired tr", has_text="ill").first
            before, after = (
                float(share) for share in re.findall(r"([\d.]+) ?%", row.inner_text())[:2]
            )
            assert before > 90 and after < 50
        page.keyboard.press("n")
    expect(story).to_have_count(0)
    expect(page.get_by_test_id("story-resume")).to_be_visible()


@pytest.mark.full
def test_the_story_is_left_and_goes_on_where_it_was(browser: Browser, demo: str) -> None:
    context = browser.new_context(viewport={"width": 900, "height": 700})
    page = context.new_page()
    page.goto(demo)
    page.wait_for_selector("html[data-state=ready]", timeout=PATIENT)
    page.keyboard.press("n")
    page.keyboard.press("n")
    expect(page.get_by_test_id("story")).to_have_attribute("data-step", "2")
    box = page.get_by_test_id("story").bounding_box()
    assert box is not None and box["height"] < 700 / 6
    page.keyboard.press("x")
    expect(page.get_by_test_id("story")).to_have_count(0)
    page.goto("about:blank")
    page.goto(f"{demo}#tab=text&view=model")
    page.wait_for_selector("html[data-state=ready]", timeout=PATIENT)
    expect(page.get_by_test_id("story")).to_have_count(0)
    assert picks(page)["view"] == "model"
    page.keyboard.press("n")
    expect(page.get_by_test_id("story")).to_have_attribute("data-step", "2")
    assert picks(page)["heads"] == ["L4H5"]
    context.close()
