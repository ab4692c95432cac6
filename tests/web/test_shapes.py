"""Models of any shape fill the window: tall ones, wide heads, few heads, many."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import numpy.typing as npt
import pytest
from playwright.sync_api import Page, expect

from attention_atlas.page.hosts.launch import start
from tests import atlases
from tests.web import maps
from tests.web.maps import enter, eventually, panel, picks, settled

pytestmark = pytest.mark.full

SHAPES = [(18, 4, 256), (30, 9, 8), (12, 12, 8), (6, 12, 8)]
NAMES = [f"{layers}x{heads}" for layers, heads, _ in SHAPES]
WINDOWS = [(1440, 900), (900, 700)]
COVERED = 0.6  # share of the canvas that panels take at least
Boxes = npt.NDArray[np.float64]

PANELS = """() => {
  const box = (one) => { const { x, y, right, bottom } = one.getBoundingClientRect();
    return [x, y, right, bottom]; };
  const all = [...document.querySelectorAll('[data-testid^=panel-]')].map(box);
  return [box(document.querySelector('[data-testid=map-canvas]')), all];
}"""


@pytest.fixture(scope="module")
def shape_url(
    built: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], str]]:
    """The address of a model by its layers and heads."""
    folder: Path = tmp_path_factory.mktemp("shapes")
    made = [atlases.shaped(folder, *shape) for shape in SHAPES]
    with start(made, port=0) as running:
        yield lambda name: f"{running.url}{NAMES.index(name)}/"


Visit = Callable[..., Page]


@pytest.fixture
def visit(page: Page, shape_url: Callable[[str], str]) -> Visit:
    """Open a model's page in a window of a size, and wait for its first full frame."""

    def go(name: str, picks: str, window: tuple[int, int] = WINDOWS[0]) -> Page:
        page.set_viewport_size({"width": window[0], "height": window[1]})
        page.add_init_script(maps.SEEN)
        page.goto(f"{shape_url(name)}#{picks}")
        page.wait_for_selector("html[data-state=ready]", timeout=30_000)
        return page

    return go


def panels(page: Page) -> tuple[Boxes, Boxes]:
    """Left, top, right and bottom of the canvas (4,) and of each panel (heads, 4)."""
    canvas, every = page.evaluate(PANELS)
    return np.array(canvas), np.array(every)


def area(boxes: Boxes) -> npt.NDArray[Any]:
    return np.asarray((boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1]))


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("name", NAMES)
def test_panels_fill_the_window_and_none_covers_another(
    name: str, window: tuple[int, int], visit: Visit
) -> None:
    page = visit(name, "tab=map", window)
    settled(page)
    canvas, boxes = panels(page)
    assert (boxes[:, :2] >= canvas[:2]).all() and (boxes[:, 2:] <= canvas[2:]).all()
    low = np.maximum(boxes[:, None, :2], boxes[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    overlap = np.maximum(high - low, 0).prod(2)
    np.fill_diagonal(overlap, 0)
    assert overlap.max() == 0
    assert area(boxes).sum() / area(canvas) >= COVERED


def test_a_tall_model_is_walked_zoomed_and_entered_like_any_other(visit: Visit) -> None:
    page = visit("18x4", "tab=map&heads=L8H1")
    settled(page)
    page.keyboard.press("ArrowDown")  # over the end of the first block
    assert picks(page)["heads"] == ["L9H1"]
    left, top, side = panel(page, "L9H1")
    page.mouse.move(left + side / 3, top + side / 3)
    page.mouse.wheel(0, -150)
    settled(page)
    grown, above, larger = panel(page, "L9H1")
    assert larger > 1.2 * side
    assert [grown + larger / 3, above + larger / 3] == pytest.approx(
        [left + side / 3, top + side / 3], abs=1
    )
    enter(page, "L14H2")  # a head of the second block
    eventually(page, lambda: picks(page)["mapHead"] == "L14H2")


def test_a_link_to_a_part_of_a_head_opens_there_in_a_window_of_another_shape(
    visit: Visit,
) -> None:
    page = visit("18x4", "tab=map")
    settled(page)
    left, top, side = panel(page, "L14H2")
    x, y = left + side / 2, top + side / 2
    page.mouse.move(x, y)
    page.mouse.down()
    canvas, _ = panels(page)
    page.mouse.move((canvas[0] + canvas[2]) / 2 + 10, (canvas[1] + canvas[3]) / 2 - 5, steps=3)
    page.mouse.up()
    page.mouse.wheel(0, -200)
    settled(page)
    eventually(page, lambda: "camera" in page.url)
    # What is in the middle, in sides of the plot from its corner.
    middle = in_plot(page, "L14H2")
    address = page.url
    page.goto("about:blank")
    page = visit("18x4", address.split("#")[1], (700, 900))
    settled(page)
    assert in_plot(page, "L14H2") == pytest.approx(middle, abs=0.02)


def in_plot(page: Page, head: str) -> list[float]:
    canvas, _ = panels(page)
    left, top, side = panel(page, head)
    x, y = (canvas[0] + canvas[2]) / 2, (canvas[1] + canvas[3]) / 2
    return [(x - left) / side, (y - top) / side]


def test_the_figure_has_every_panel_and_the_names_of_all_layers(visit: Visit) -> None:
    page = visit("30x9", "tab=map")
    settled(page)
    figure = ElementTree.fromstring(page.evaluate("attentionAtlas.svg()"))
    frames = [one for one in figure.findall(".//{*}rect") if one.get("fill") == "none"]
    assert len(frames) == 270
    words = {one.text for one in figure.findall(".//{*}text")}
    assert {f"L{layer}" for layer in range(30)} | {f"H{head}" for head in range(9)} <= words


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("values", ["false", "true"])
def test_the_sums_of_wide_heads_stay_in_sight_at_any_scroll(
    values: str, window: tuple[int, int], visit: Visit
) -> None:
    page = visit("18x4", f"tab=text&view=neuron&heads=L3H1&valueWeighted={values}", window)
    scroller = page.get_by_test_id("neuron-panel")
    box = scroller.bounding_box()
    assert box is not None
    for share in (0, 0.5, 1):
        scroller.evaluate(f"one => (one.scrollLeft = {share} * one.scrollWidth)")
        for name in ("q · k", "softmax"):
            head = page.locator(".aa-neuron-heads").get_by_text(name, exact=True)
            found = head.bounding_box()
            assert found is not None
            assert box["x"] <= found["x"]
            assert found["x"] + found["width"] <= box["x"] + box["width"]
            expect(head).to_be_in_viewport(ratio=1)


def test_the_lines_of_a_short_sentence_take_the_height_there_is(visit: Visit) -> None:
    page = visit("18x4", "tab=text&heads=L3H1", (900, 700))
    strip = page.get_by_test_id("lines-0").bounding_box()
    last = page.locator("[data-testid^=query-0-]").last.bounding_box()
    assert strip is not None and last is not None
    assert last["y"] + last["height"] == pytest.approx(strip["y"] + strip["height"], abs=2)
