"""Fingers on the page: a tap clicks, a long press points, two fingers zoom."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, CDPSession, Page, expect

from tests.web.conftest import PATIENCE
from tests.web.maps import SEEN, eventually, picks, settled

pytestmark = pytest.mark.full
Address = Callable[..., str]
PRESS = 600  # ms; longer than what the page takes for a long press


@pytest.fixture
def finger(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1000, "height": 800}, has_touch=True)
    page = context.new_page()
    page.add_init_script(SEEN)
    yield page
    context.close()


def _touch(session: CDPSession, kind: str, *places: tuple[float, float]) -> None:
    points = [{"x": x, "y": y, "id": at} for at, (x, y) in enumerate(places)]
    session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})


def _open(page: Page, url: str) -> CDPSession:
    page.goto(url)
    page.wait_for_selector("html[data-state=ready]", timeout=PATIENCE)
    return page.context.new_cdp_session(page)


def _middle(box: Any) -> tuple[float, float]:
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_a_tap_pins_a_token_and_a_long_press_points_at_it(finger: Page, page_url: Address) -> None:
    session = _open(finger, page_url("gpt", "tab=text&view=head&heads=L3H1"))
    at = _middle(finger.get_by_test_id("query-0-4").bounding_box())
    finger.touchscreen.tap(*at)
    eventually(finger, lambda: picks(finger)["token"] == {"side": "query", "position": 4})
    assert picks(finger)["pinned"]
    finger.touchscreen.tap(*at)
    eventually(finger, lambda: not picks(finger)["pinned"])
    other = _middle(finger.get_by_test_id("query-0-6").bounding_box())
    _touch(session, "touchStart", other)
    expect(finger.get_by_test_id("status")).to_contain_text("token 6", timeout=PATIENCE)
    _touch(session, "touchEnd")
    finger.wait_for_function("() => true")
    assert not picks(finger)["pinned"]
    expect(finger.get_by_test_id("edit-menu")).to_have_count(0)


def test_a_tap_on_the_heat_map_pins_its_row(finger: Page, page_url: Address) -> None:
    _open(finger, page_url("gpt", "tab=text&view=heat&heads=L3H1"))
    box = finger.get_by_test_id("heat-canvas").bounding_box()
    finger.touchscreen.tap(*_middle(box))
    eventually(finger, lambda: picks(finger)["pinned"])
    assert picks(finger)["token"]["side"] == "query"


def test_taps_open_a_head_of_the_map_and_two_fingers_zoom(finger: Page, map_url: Address) -> None:
    session = _open(finger, map_url("gpt-map", "tab=map"))
    settled(finger)
    panel = finger.get_by_test_id("panel-L2H3").bounding_box()
    finger.touchscreen.tap(*_middle(panel))
    eventually(finger, lambda: picks(finger)["mapHead"] == "L2H3")
    settled(finger)
    before = finger.get_by_test_id("panel-L2H3").bounding_box()
    x, y = _middle(finger.get_by_test_id("map-canvas").bounding_box())
    _touch(session, "touchStart", (x - 40, y), (x + 40, y))
    for apart in (50, 60, 70, 80):
        _touch(session, "touchMove", (x - apart, y), (x + apart, y))
    _touch(session, "touchEnd")
    settled(finger)
    after = finger.get_by_test_id("panel-L2H3").bounding_box()
    assert before is not None and after is not None
    # Fingers that are twice as far apart show it twice as large.
    assert after["width"] / before["width"] == pytest.approx(2, rel=0.1)
    assert picks(finger)["mapHead"] == "L2H3"


def test_a_long_press_on_the_map_tells_the_point_and_picks_nothing(
    finger: Page, map_url: Address
) -> None:
    session = _open(finger, map_url("gpt-map", "tab=map"))
    settled(finger)
    at = _middle(finger.get_by_test_id("panel-L1H1").bounding_box())
    _touch(session, "touchStart", at)
    expect(finger.get_by_test_id("status")).to_contain_text("L1H1", timeout=PATIENCE)
    _touch(session, "touchEnd")
    assert picks(finger)["mapHead"] is None
