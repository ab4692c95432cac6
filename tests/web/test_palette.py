"""The command palette in a real Chromium: found by letters, walked by arrows, heard as a list."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.web.maps import eventually, picks

Open = Callable[..., Page]


def _do(page: Page, typed: str) -> None:
    page.keyboard.press("Control+k")
    box = page.get_by_role("combobox", name="command")
    expect(box).to_be_focused()
    page.keyboard.type(typed)
    expect(page.get_by_test_id("palette-dialog").get_by_role("option").first).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("palette-dialog")).to_have_count(0)


def test_a_command_is_found_and_done_by_keys(open_page: Open) -> None:
    page = open_page("gpt")
    _do(page, "l3h2")
    eventually(page, lambda: picks(page)["heads"] == ["L3H2"])
    _do(page, "all heads view")
    eventually(page, lambda: picks(page)["view"] == "model")
    _do(page, "theme dark")
    expect(page.locator("html[data-theme=dark]")).to_have_count(1)


@pytest.mark.full
def test_the_list_says_which_option_is_active(open_page: Open) -> None:
    page = open_page("gpt")
    page.get_by_test_id("commands").click()
    box = page.get_by_role("combobox", name="command")
    page.keyboard.type("theme")
    options = page.get_by_role("listbox", name="commands that fit").get_by_role("option")
    expect(options.first).to_have_attribute("aria-selected", "true")
    for place in (0, 1, 2):
        active = box.get_attribute("aria-activedescendant")
        assert active == options.nth(place).get_attribute("id")
        page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    expect(options.nth(1)).to_have_attribute("aria-selected", "true")
    box.fill("qqqqq")
    expect(page.get_by_test_id("palette-count")).to_contain_text("Nothing is named like")
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("palette-dialog")).to_have_count(0)


@pytest.mark.full
def test_the_map_gives_its_own_commands(open_map: Open) -> None:
    page = open_map("gpt-map")
    _do(page, "pca 3-d")
    eventually(page, lambda: picks(page)["map"] == "pca-3d")
    _do(page, "map colour times this token")
    eventually(page, lambda: picks(page)["colour"] == "frequency")
    page.keyboard.press("Control+k")
    page.keyboard.type("the doctor")
    page.keyboard.press("Enter")
    eventually(page, lambda: picks(page)["input"] == 3)
