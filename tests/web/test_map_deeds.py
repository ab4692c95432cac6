"""What a page can have done: maps computed, texts added; and atlases that never mix."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from attention_atlas.page.hosts.launch import start
from attention_atlas.page.live.model import LiveModel
from tests import planted
from tests.web.maps import SEEN, inked, picks, pixels, settled

NEW = "The zebra gave the doctor a letter."


@pytest.fixture(scope="module")
def served(
    built: None, mapped: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """An atlas with its model, then one that has no maps yet."""
    bare = planted.planted(tmp_path_factory.mktemp("bare") / "bare.atlas", 4)
    with start([mapped["gpt-map"], bare], port=0, models=[LiveModel("builtin:gpt"), None]) as there:
        yield there.url


@pytest.fixture
def visit(page: Page, served: str) -> Callable[[str], Page]:
    def go(path: str) -> Page:
        page.add_init_script(SEEN)
        page.goto(served + path)
        page.wait_for_selector("html[data-state=ready]")
        return page

    return go


@pytest.mark.full
def test_an_atlas_without_maps_offers_to_compute_them(visit: Callable[[str], Page]) -> None:
    page = visit("1/")
    page.get_by_test_id("tab-map").click()
    expect(page.get_by_test_id("no-maps")).to_contain_text("No maps yet")
    button = page.get_by_test_id("compute-pca-2")
    expect(button).to_have_text("Compute PCA 2-D")
    expect(page.get_by_test_id("no-maps")).to_contain_text("about")
    button.click()
    expect(page.get_by_test_id("panel-L0H4")).to_be_attached(timeout=60_000)
    settled(page)
    assert inked(pixels(page)).any()
    assert picks(page)["map"] == "pca-2d"


@pytest.mark.full
def test_a_new_text_appears_on_the_map_and_can_be_searched(visit: Callable[[str], Page]) -> None:
    page = visit("0/#tab=map")
    settled(page)
    page.get_by_test_id("search").fill("zebra")
    page.get_by_test_id("search-prefix").click()
    before = len(page.get_by_test_id("input").locator("option").all())
    page.get_by_test_id("add-text").fill(NEW)
    page.get_by_test_id("add").click()
    expect(page.get_by_test_id("input").locator("option")).to_have_count(before + 1, timeout=60_000)
    assert picks(page)["input"] == before
    page.get_by_test_id("search").fill("z")
    expect(page.get_by_test_id("search-count")).to_contain_text("tokens in 1 inputs")
    page.get_by_test_id("search").fill("")
    settled(page)
    page.reload()
    page.wait_for_selector("html[data-state=ready]")
    settled(page)
    expect(page.get_by_test_id("input").locator("option")).to_have_count(before + 1)


@pytest.mark.full
def test_two_atlases_open_together_never_mix(visit: Callable[[str], Page]) -> None:
    page = visit("#tab=map")
    expect(page.get_by_test_id("model")).to_have_text("builtin:gpt")
    other = page.locator("[data-testid^=atlas-]:not([data-testid=atlas])").first
    other.click()
    page.wait_for_selector("html[data-state=ready]")
    expect(page.get_by_test_id("model")).not_to_have_text("builtin:gpt")
    assert page.get_by_test_id("panel-L3H2").count() == 0
