"""The difference of two inputs: what became weaker is told as well as what became stronger."""

from collections.abc import Callable
from itertools import product
from typing import Any
from xml.etree import ElementTree

import numpy as np
import numpy.typing as npt
import pytest
from playwright.sync_api import Page, expect

from tests.web.test_page_lines import told

Open = Callable[..., Page]
HEAD = "L3H4"
BOTH = f"heads={HEAD}&other=1"
WEAKER = "rgb(225 129 44)"


@pytest.fixture
def changed(subjects: dict[str, Any]) -> npt.NDArray[np.float32]:
    """(N, N) second minus first, from the atlas."""
    first, second = (subjects["gpt"].weights(number, HEAD) for number in (0, 1))
    return np.asarray(second - first)


@pytest.fixture
def weakened(changed: npt.NDArray[np.float32]) -> tuple[int, int]:
    """The row and column whose weight fell most."""
    row, column = np.unravel_index(changed.argmin(), changed.shape)
    assert changed[row, column] < -0.05
    return int(row), int(column)


def hover_difference(page: Page) -> None:
    """Move the mouse over the heat-map until it is on the third one."""
    box = page.get_by_test_id("heat-canvas").bounding_box()
    assert box is not None
    tip = page.get_by_test_id("heat-tip")
    for y, x in product((0.9, 0.7, 0.5, 0.3), (0.9, 0.7, 0.5, 0.3, 0.1)):
        page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])
        if tip.count() and "second − first" in tip.inner_text():
            return
    raise AssertionError("no heat-map of the difference under the mouse")


@pytest.mark.full
def test_the_heat_map_of_a_difference_tells_what_became_weaker(
    open_page: Open, changed: npt.NDArray[np.float32], weakened: tuple[int, int]
) -> None:
    page = open_page("gpt", f"view=heat&{BOTH}")
    hover_difference(page)
    page.get_by_label("heat-map; arrows walk its cells").focus()
    size = len(changed)
    row, column = weakened
    for key, times in (
        ("ArrowUp", size), ("ArrowLeft", size), ("ArrowDown", row), ("ArrowRight", column),
    ):  # fmt: skip
        for _ in range(times):
            page.keyboard.press(key)
    expect(page.get_by_test_id("heat-tip")).to_contain_text(f"−{-changed[weakened]:.3f}")


def test_lines_of_a_difference_tell_what_became_weaker_from_the_side_looked_at(
    open_page: Open, changed: npt.NDArray[np.float32], weakened: tuple[int, int]
) -> None:
    row, column = weakened
    page = open_page("gpt", BOTH)
    page.get_by_test_id(f"key-0-{column}").hover()
    told_there = page.get_by_test_id(f"query-2-{row}")
    expect(told_there).to_contain_text(f"−{-changed[weakened]:.3f}")
    assert told(page, "query", 2)[row] == pytest.approx(changed[weakened], abs=1e-6)


def test_the_figure_of_a_difference_shades_what_became_weaker(
    open_page: Open, changed: npt.NDArray[np.float32], weakened: tuple[int, int]
) -> None:
    _, column = weakened
    page = open_page("gpt", BOTH)
    expect(page.get_by_test_id("lines-2")).to_be_visible()
    page.get_by_test_id(f"key-0-{column}").click()
    figure = ElementTree.fromstring(page.evaluate("attentionAtlas.svg()"))
    shaded = [one for one in figure.findall(".//{*}rect") if one.get("fill") == WEAKER]
    visible = np.abs(changed[:, column]) ** 0.75 > 0.01  # how opaque a weight is drawn
    assert len(shaded) == (visible & (changed[:, column] < 0)).sum()
