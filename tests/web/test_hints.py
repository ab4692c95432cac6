"""What a first visit is told covers nothing of what it tells about."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.web import pictures
from tests.web.conftest import PATIENCE
from tests.web.maps import painted

Address = Callable[..., str]
SIZES: list[Any] = [{"width": 1440, "height": 900}, {"width": 900, "height": 700}]
TABS = {
    "map": "Every panel is a head.",
    "text": "Point at a token",
    "image": "Point at a patch",
    "heads": "Every square, dot and row is a head.",
}
# Everything in the canvas that shows something, by the corner and size of what is in sight of it.
COVERED = """() => {
  const hints = document.querySelector('[data-testid=hints]');
  const mine = hints.getBoundingClientRect();
  const main = document.querySelector('.aa-canvas');
  return [...main.querySelectorAll('canvas, svg, table, button, .aa-legend, [data-testid^=panel-]')]
    .filter((shown) => !hints.contains(shown))
    .filter((shown) => {
      const box = shown.getBoundingClientRect();
      return box.left < mine.right && mine.left < box.right && box.top < mine.bottom
        && mine.top < box.bottom && box.width * box.height > 0;
    })
    .map((shown) => shown.dataset.testid ?? shown.className ?? shown.tagName);
}"""


@pytest.fixture
def first_visit(page: Page, page_url: Address, map_url: Address) -> Callable[[str], Page]:
    """Go to a tab as somebody who was never here."""

    def go(tab: str) -> Page:
        if tab == "image":
            pictures.serve(page, pictures.Scene([(640, 480)], [(0, 7, 7, pictures.WHOLE)]))
            page.goto(f"{pictures.HOME}#tab=image")
        else:
            url = map_url("gpt-map") if tab == "map" else page_url("gpt", f"tab={tab}")
            page.goto(url)
        page.wait_for_selector("html[data-state=ready]", timeout=PATIENCE)
        expect(page.get_by_test_id("hints")).to_contain_text(TABS[tab])
        painted(page)
        return page

    return go


@pytest.mark.full
@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size['width']}x{size['height']}")
@pytest.mark.parametrize("tab", TABS)
def test_hints_cover_nothing(
    page: Page, first_visit: Callable[[str], Page], tab: str, size: Any
) -> None:
    page.set_viewport_size(size)
    first_visit(tab)
    assert page.evaluate(COVERED) == []
    hints = page.get_by_test_id("hints").bounding_box()
    assert hints is not None
    assert hints["height"] < size["height"] / 4 and hints["y"] + hints["height"] < size["height"]


@pytest.mark.full
def test_hints_cover_nothing_in_any_view_of_the_text(
    page: Page, first_visit: Callable[[str], Page]
) -> None:
    first_visit("text")
    for view in ("model", "neuron", "heat"):
        page.get_by_test_id(f"view-{view}").click()
        painted(page)
        assert page.evaluate(COVERED) == []


def test_what_hints_leave_belongs_to_the_panel_once_they_are_gone(
    page: Page, first_visit: Callable[[str], Page]
) -> None:
    first_visit("map")
    before = page.get_by_test_id("map-canvas").bounding_box()
    page.keyboard.press("x")
    expect(page.get_by_test_id("hints")).to_have_count(0)
    painted(page)
    after = page.get_by_test_id("map-canvas").bounding_box()
    assert before is not None and after is not None
    assert after["y"] < before["y"] and after["height"] > before["height"]


def test_a_view_without_tokens_is_not_told_to_point_at_one(
    page: Page, first_visit: Callable[[str], Page]
) -> None:
    first_visit("text")
    hints = page.get_by_test_id("hints")
    expect(hints).to_contain_text("1 of 3")
    for view, told in (("model", "Click a head to open it"), ("head", TABS["text"])):
        page.get_by_test_id(f"view-{view}").click()
        expect(hints).to_contain_text(told)
