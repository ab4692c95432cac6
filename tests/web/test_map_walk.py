"""One walk over the map as a person takes it, on every kind of model that we have at hand."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.web.maps import enter, inked, picks, pixels, settled
from tests.web.test_map_single import HEAD, expected_lines, lines, pick

pytestmark = pytest.mark.full

Open = Callable[..., Page]
Mapped = dict[str, Any]


@pytest.mark.parametrize("name", ["gpt-map", "bert-map", "minilm-map"])
def test_from_all_heads_to_one_point_and_back(name: str, open_map: Open, mapped: Mapped) -> None:
    atlas = mapped[name]
    page = open_map(name)
    assert page.locator("[data-testid^=panel-L]").count() == len(atlas.heads())
    plain = pixels(page)
    page.get_by_test_id("colour").select_option("position")
    settled(page)
    coloured = pixels(page)
    assert (coloured != plain).any() and (inked(coloured) == inked(plain)).mean() > 0.999

    page.get_by_test_id("search").fill("the")
    texts = atlas.tokens()["text"].str.replace("Ġ", "").str.replace("##", "").str.lower()
    expect(page.get_by_test_id("search-count")).to_contain_text(f"{(texts == 'the').sum()} tokens")
    page.get_by_test_id("search").fill("")

    enter(page, HEAD)
    assert picks(page)["mapHead"] == HEAD
    chosen = pick(page, atlas)
    expect(page.get_by_test_id("sentence-view")).to_be_visible()
    assert lines(page) == expected_lines(atlas.weights(int(chosen["input"]), HEAD))

    page.get_by_test_id("to-lines").click()
    expect(page.get_by_test_id("lines-0")).to_contain_text(HEAD)
    assert picks(page)["token"] == {"side": chosen["side"], "position": chosen["position"]}
    page.get_by_test_id("tab-map").click()
    settled(page)
    flat = pixels(page)
    page.get_by_test_id("dims-3").click()
    settled(page)
    assert picks(page)["map"] == "pca-3d" and (pixels(page) != flat).any()
    for _ in range(2):  # out of the point, out of the head
        page.keyboard.press("Escape")
        settled(page)
    assert picks(page)["mapHead"] is None
