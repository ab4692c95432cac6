"""Does everything in the bars of the page have room, in every tab and view?"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, get_args, get_type_hints

import pytest
from playwright.sync_api import Page, expect

from attention_atlas.page.wire.picks import Picks

# What stands in a bar, from left to right: its name, its sides, whether its words are cut off.
_PARTS = """bar => [...bar.querySelectorAll('button, select, .aa-brand, .aa-model, .aa-says')]
  .map(part => [part, part.getBoundingClientRect()])
  .filter(([part, box]) => box.width > 0 && getComputedStyle(part).visibility === 'visible')
  .map(([part, box]) => ({
    name: part.dataset.testid ?? part.className, left: box.left, right: box.right,
    cut: part.tagName === 'BUTTON' && part.scrollWidth > part.clientWidth + 1,
  })).sort((a, b) => a.left - b.left)"""
_SELECT = 120  # px in which a person can read which input is picked


def _check_room(page: Page, width: int) -> None:
    for selector in ("header.aa-top", ".aa-views"):
        bars = page.locator(selector)
        parts: list[dict[str, Any]] = bars.first.evaluate(_PARTS) if bars.count() else []
        for part in parts:
            assert part["left"] >= 0 and part["right"] <= width, part
            assert not part["cut"], part
        for before, after in pairwise(parts):
            assert before["right"] <= after["left"] + 0.5, (before, after)
    box = page.get_by_test_id("input").bounding_box()
    assert box is not None and box["width"] >= _SELECT


SIZES_BETWEEN = [
    pytest.param(size, marks=pytest.mark.full) for size in ((1280, 800), (1100, 700), (900, 700))
]


@pytest.mark.parametrize("size", [(1440, 900), *SIZES_BETWEEN, (600, 700)])
def test_nothing_in_the_top_bar_overlaps_or_is_cut_off(
    size: tuple[int, int], open_page: Callable[..., Page]
) -> None:
    page = open_page("gpt")
    page.set_viewport_size({"width": size[0], "height": size[1]})
    places = [{"tab": tab} for tab in ("map", "heads", "lab")]
    places += [{"tab": "text", "view": view} for view in get_args(get_type_hints(Picks)["view"])]
    for place in places:
        page.evaluate("picks => window.attentionAtlas.setPicks(picks)", place)
        if "view" in place:
            current = page.get_by_test_id(f"view-{place['view']}")
            expect(current).to_have_attribute("aria-current", "page")
        _check_room(page, size[0])


def test_a_page_too_small_for_its_tabs_has_them_in_a_menu(open_page: Callable[..., Page]) -> None:
    page = open_page("gpt")
    page.set_viewport_size({"width": 600, "height": 700})
    page.get_by_test_id("tab-menu").focus()
    page.keyboard.press("h")  # the first letter of Heads
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("head-table")).to_be_visible()
    page.get_by_test_id("tab-menu").select_option("text")
    expect(page.get_by_test_id("view-head")).to_be_visible()


def test_views_are_reached_by_the_keyboard(open_page: Callable[..., Page]) -> None:
    page = open_page("gpt")
    page.get_by_test_id("view-head").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("view-model")).to_have_attribute("aria-current", "page")
    expect(page.get_by_test_id("view-says")).to_have_text("every head of the model, small")
