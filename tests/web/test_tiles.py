"""A long input as a person looks at it: a map of tiles, and lines by windows.

What is drawn and told is compared with the weights of the atlas, pooled in plain NumPy.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from playwright.sync_api import Error, Page, Route, expect

import attention_atlas as aa
from attention_atlas.page.hosts.export import save_page
from attention_atlas.page.hosts.launch import start
from tests.long_text import BACK, TOKENS, long_text
from tests.made_once import MadeOnce
from tests.web.heat_colours import heat_scale
from tests.web.maps import SEEN, eventually

Floats = npt.NDArray[np.float64]
Open = Callable[..., Page]
Weights = Callable[[str], Floats]

LEFT, TOP = 104, 94  # the room of the names beside the map
# Bars and side panels come a frame after the map, which then changes its size.
FITTED = """() => {
  const stage = document.querySelector('[data-testid=tile-stage]');
  const canvas = stage?.querySelector('canvas');
  const sides = ['clientWidth', 'clientHeight'];
  return !stage || sides.every((side) => canvas[side] === stage[side]);
}"""
READY = "[data-testid=tile-panel][data-exact=true][data-missing='0']"


@pytest.fixture(scope="session")
def atlas(made_once: MadeOnce) -> aa.Atlas:
    def make(folder: Path) -> None:
        long_text(folder / "long.atlas")

    return aa.open(made_once("long", make) / "long.atlas")


@pytest.fixture(scope="session")
def weights(atlas: aa.Atlas) -> Weights:
    """The weights (N, N) of a head of the long input."""
    return lru_cache(4)(lambda head: atlas.weights(1, head).astype(np.float64))


@pytest.fixture(scope="session")
def address(built: None, atlas: aa.Atlas) -> Iterator[str]:
    with start([atlas], port=0) as running:
        yield running.url


@pytest.fixture
def open_long(page: Page, address: str) -> Open:
    """Go to the long input and wait until all that is in view is exact."""

    def go(hash: str = "view=heat", ready: str = READY) -> Page:
        page.add_init_script(SEEN)
        page.goto(f"{address}#tab=text&input=1&{hash}")
        page.wait_for_selector("html[data-state=ready]")
        page.wait_for_function(FITTED)
        page.wait_for_selector(ready)
        return page

    return go


def picks(page: Page) -> dict[str, Any]:
    found: dict[str, Any] = page.evaluate("attentionAtlas.picks()")
    return found


def pooled(weights: Floats, level: int) -> tuple[Floats, Floats]:
    """The strongest weight and the sum of each cell."""
    cell = 2**level
    n, m = (-(-length // cell) for length in weights.shape)
    padded = np.zeros((n * cell, m * cell))
    padded[: weights.shape[0], : weights.shape[1]] = weights
    cells = padded.reshape(n, cell, m, cell)
    return cells.max((1, 3)), cells.sum((1, 3))


def geometry(page: Page) -> tuple[float, float, float]:
    """The row and column at the map's corner, and the pixels of a weight, from the picks."""
    read = "(stage) => [stage.clientWidth, stage.clientHeight]"
    wide, high = page.get_by_test_id("tile-stage").evaluate(read)
    width, height = wide - LEFT, high - TOP
    if picks(page)["tileView"] is None:
        return 0, 0, min(width, height) / TOKENS
    row, column, span = picks(page)["tileView"]
    cell = min(width, height) / span
    return row - height / cell / 2, column - width / cell / 2, cell


def place_of(page: Page, row: float, column: float) -> tuple[float, float]:
    """Where the middle of a weight is on the page."""
    box: Any = page.get_by_test_id("tile-stage").bounding_box()
    top, left, cell = geometry(page)
    x, y = (column + 0.5 - left) * cell, (row + 0.5 - top) * cell
    return box["x"] + LEFT + x, box["y"] + TOP + y


def weight_under(page: Page, x: float, y: float) -> tuple[float, float]:
    """Row and column at a pixel of the page, with fractions."""
    box: Any = page.get_by_test_id("tile-stage").bounding_box()
    top, left, cell = geometry(page)
    return top + (y - box["y"] - TOP) / cell, left + (x - box["x"] - LEFT) / cell


def colours_at(page: Page, places: list[tuple[int, int]]) -> Floats:
    """The colours of the canvas at some weights."""
    box: Any = page.get_by_test_id("tile-stage").bounding_box()
    points = [place_of(page, row, column) for row, column in places]
    inside = [[x - box["x"], y - box["y"]] for x, y in points]
    read = """([points]) => {
      const canvas = document.querySelector('[data-testid=tile-canvas]');
      const ratio = canvas.width / canvas.clientWidth;
      return points.map(([x, y]) => [...canvas.getContext('2d')
        .getImageData(Math.floor(x * ratio), Math.floor(y * ratio), 1, 1).data.slice(0, 3)]);
    }"""
    return np.array(page.evaluate(read, [inside]), np.float64)


def let_go(page: Page, held: list[Route]) -> None:
    """Answer the requests that were held, except those that the page dropped."""
    page.unroute_all()
    for route in held:
        with suppress(Error):
            route.continue_()


def steps(weights: Floats) -> npt.NDArray[np.int64]:
    """The step of the colour scale of some weights: a root, so that weak ones are seen."""
    return np.asarray(np.rint(255 * np.sqrt(np.clip(weights, 0, 1))), np.int64)


def assert_coloured(drawn: Floats, weights: Floats) -> None:
    """Colours may be one step of the scale off: roots are rounded once more on their way."""
    near = [heat_scale()[np.clip(steps(weights) + by, 0, 255)] for by in (-1, 0, 1)]
    off = np.min([np.abs(drawn - colours).max(1) for colours in near], axis=0)
    assert off.max() <= 1  # a byte


@pytest.mark.full
def test_the_whole_input_is_drawn_as_its_pooled_weights(open_long: Open, weights: Weights) -> None:
    page = open_long("view=heat&heads=L0H1")
    strongest, mass = pooled(weights("L0H1"), 4)
    assert page.get_by_test_id("tile-panel").get_attribute("data-level") == "4"
    luck = np.random.default_rng(1)
    cells = luck.integers(0, TOKENS // 16, (60, 2))
    middles = [(16 * int(row) + 8, 16 * int(column) + 8) for row, column in cells]
    assert_coloured(colours_at(page, middles), strongest[cells[:, 0], cells[:, 1]])
    page.get_by_test_id("pooled-mean").click()
    expect(page.get_by_test_id("legend-name")).to_have_text("mean weight of 16 × 16")
    assert_coloured(colours_at(page, middles), mass[cells[:, 0], cells[:, 1]] / 16)


@pytest.mark.full
@pytest.mark.parametrize("head", ["L0H0", "L0H1"])
def test_zoomed_in_every_weight_is_the_atlass_own(
    head: str, open_long: Open, weights: Weights
) -> None:
    page = open_long(f"view=heat&heads={head}&tileView=[1500,1480,60]")
    assert page.get_by_test_id("tile-panel").get_attribute("data-level") == "0"
    places = [(row, column) for row in range(1475, 1525, 7) for column in range(1455, 1500, 5)]
    places += [(row, row - 1) for row in range(1480, 1500)]
    wanted = np.array([weights(head)[place] for place in places])
    assert_coloured(colours_at(page, places), wanted)


def test_the_cursor_tells_tokens_positions_weight_and_the_text_around(
    open_long: Open, atlas: aa.Atlas, weights: Weights
) -> None:
    page = open_long("view=heat&heads=L0H1&tileView=[1500,1480,60]")
    tokens = atlas.tokens(1)["text"].tolist()
    row = 1500
    column = next(key for key in range(row - 1, 0, -1) if tokens[key] == tokens[row])
    page.mouse.move(*place_of(page, row, max(column, 1455)))
    column = max(column, 1455)
    weight = weights("L0H1")[row, column]
    tip = page.get_by_test_id("tile-tip")
    expect(tip).to_contain_text(f"{tokens[row]} 1,500 looks at {tokens[column]} {column:,}")
    told = float(re.search(r"weight (\S+)", tip.inner_text())[1])  # type: ignore[index]
    # Three digits are told; the roots were rounded to 65535ths.
    assert told == pytest.approx(weight, rel=5e-3, abs=1e-9)
    around = " ".join(tokens[row - 2 : row + 3])
    expect(page.get_by_test_id("text-query")).to_contain_text(around)
    expect(page.get_by_test_id("text-key").locator("mark")).to_have_text(tokens[column])


@pytest.mark.full
def test_a_pooled_cell_tells_its_span_and_what_is_in_it(open_long: Open, weights: Weights) -> None:
    page = open_long("view=heat&heads=L0H3")
    strongest, mass = pooled(weights("L0H3"), 4)
    row, column = 2008, 2008 - BACK
    page.mouse.move(*place_of(page, row, column))
    at = row // 16, column // 16
    tip = page.get_by_test_id("tile-tip")
    first = (16 * at[0], 16 * at[1])
    expect(tip).to_contain_text(f"{first[0]:,}–{first[0] + 15:,} look at")
    told = dict(re.findall(r"(strongest|mean|sum) ([\d.e-]+)", tip.inner_text()))
    assert float(told["strongest"]) == pytest.approx(strongest[at], rel=5e-3)
    assert float(told["sum"]) == pytest.approx(mass[at], rel=5e-3)
    assert float(told["mean"]) == pytest.approx(mass[at] / 256, rel=5e-3)


def test_a_first_overview_says_that_it_is_sampled_until_the_exact_one_is_there(
    page: Page, open_long: Open
) -> None:
    held: list[Route] = []
    page.route(re.compile(r"/api/overview/1/L0H1/0$"), lambda route: held.append(route))
    open_long("view=heat&heads=L0H1", "[data-testid=tile-panel][data-exact=false]")
    expect(page.get_by_test_id("sampled")).to_have_text("sampled: every 16th row")
    eventually(page, lambda: len(held) == 1)
    held[0].continue_()
    page.wait_for_selector(READY)
    expect(page.get_by_test_id("sampled")).to_have_count(0)


@pytest.mark.full
def test_coarser_tiles_stand_in_until_finer_ones_come(open_long: Open, weights: Weights) -> None:
    page = open_long("view=heat&heads=L0H0")
    held: list[Route] = []
    page.route(re.compile(r"/api/tile/"), lambda route: held.append(route))
    page.mouse.move(*place_of(page, 2000, 1999))
    page.mouse.wheel(0, -1600)
    eventually(page, lambda: len(held) > 0)
    places = [(2000, 1999), (2000, 1985), (2015, 1999)]  # all in one cell of level 4
    strongest, _ = pooled(weights("L0H0"), 4)
    assert_coloured(colours_at(page, places), np.full(3, strongest[2000 // 16, 1999 // 16]))
    let_go(page, held)
    page.wait_for_selector(READY)
    level = int(page.get_by_test_id("tile-panel").get_attribute("data-level") or 0)
    assert level < 4
    sharp, _ = pooled(weights("L0H0"), level)
    wanted = np.array([sharp[row >> level, column >> level] for row, column in places])
    assert_coloured(colours_at(page, places), wanted)
    assert wanted.min() < wanted.max() / 2


def test_requests_of_tiles_out_of_view_are_dropped(open_long: Open) -> None:
    page = open_long("view=heat&heads=L0H1")
    dropped: list[str] = []
    page.on("requestfailed", lambda request: dropped.append(request.url))
    held: list[Route] = []
    page.route(re.compile(r"/api/tile/"), lambda route: held.append(route))
    page.evaluate("attentionAtlas.setPicks({tileView: [2700, 2600, 60]})")
    eventually(page, lambda: len(held) > 0)
    page.evaluate("attentionAtlas.setPicks({tileView: [500, 400, 60]})")
    eventually(page, lambda: any(re.search(r"/0/10/", url) for url in dropped))
    let_go(page, held)
    page.wait_for_selector(READY)


@pytest.mark.full
def test_wheel_drag_double_click_and_keys_move_the_map(open_long: Open) -> None:
    page = open_long("view=heat&heads=L0H1")
    x, y = (round(place) for place in place_of(page, 2000, 1000))
    under = weight_under(page, x, y)
    page.mouse.move(x, y)
    page.mouse.wheel(0, -500)
    eventually(page, lambda: picks(page)["tileView"] is not None)
    cell = geometry(page)[2]
    # To within a tenth of a pixel: the address keeps a hundredth of a token.
    assert weight_under(page, x, y) == pytest.approx(under, abs=0.1 / cell)
    page.mouse.down()
    page.mouse.move(x + 60, y + 30, steps=3)
    page.mouse.up()
    assert weight_under(page, x + 60, y + 30) == pytest.approx(under, abs=0.1 / cell)
    page.mouse.dblclick(x, y)
    assert geometry(page)[2] == pytest.approx(2 * cell, rel=1e-3)
    page.get_by_test_id("tile-stage").focus()
    page.keyboard.press("-")
    assert geometry(page)[2] == pytest.approx(cell, rel=1e-3)
    page.keyboard.press("0")
    assert picks(page)["tileView"] is None
    page.keyboard.press("Escape")
    assert picks(page)["token"] is None


def test_arrows_walk_cells_and_enter_opens_one(open_long: Open) -> None:
    page = open_long("view=heat&heads=L0H1&tileView=[1500,1480,60]")
    page.mouse.move(*place_of(page, 1500, 1480))
    page.get_by_test_id("tile-stage").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowLeft"):
        page.keyboard.press(key)
    expect(page.get_by_test_id("row-name")).to_contain_text("1,502")
    page.keyboard.press("Enter")
    found = picks(page)
    assert (found["token"], found["key"]) == ({"side": "query", "position": 1502}, 1479)
    assert found["heads"] == ["L0H1"]


def test_the_minimap_shows_the_view_and_moves_it(open_long: Open) -> None:
    page = open_long("view=heat&heads=L0H1&tileView=[750,750,400]")
    box: Any = page.get_by_test_id("minimap").bounding_box()
    frame: Any = page.get_by_test_id("minimap-frame").bounding_box()
    middle = (frame["y"] + frame["height"] / 2 - box["y"]) / box["height"]
    assert middle == pytest.approx(0.25, abs=0.02)
    page.mouse.move(frame["x"] + frame["width"] / 2, frame["y"] + frame["height"] / 2)
    page.mouse.down()
    page.mouse.move(frame["x"] + frame["width"] / 2, frame["y"] + box["height"] / 2, steps=4)
    page.mouse.up()
    row, column, _ = picks(page)["tileView"]
    # A pixel of the minimap is 23 tokens.
    moved = (box["height"] / 2 - frame["height"] / 2) / box["height"] * TOKENS
    assert row - 750 == pytest.approx(moved, abs=24)
    assert column == pytest.approx(750, abs=24)


def test_a_token_is_found_by_word_and_by_number(open_long: Open, atlas: aa.Atlas) -> None:
    page = open_long("view=heat&heads=L0H1")
    tokens = atlas.tokens(1)["text"].tolist()
    hits = [at for at, text in enumerate(tokens) if "walks" in text]
    page.keyboard.press("/")
    page.keyboard.type("walks")
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("jump-hits")).to_have_text(f"1 of {len(hits)}")
    assert picks(page)["token"] == {"side": "query", "position": hits[0]}
    page.get_by_test_id("jump-next").click()
    assert picks(page)["token"]["position"] == hits[1]
    page.get_by_test_id("jump-back").click()
    page.get_by_test_id("jump-back").click()
    assert picks(page)["token"]["position"] == hits[-1]
    page.get_by_test_id("jump").fill("2,500")
    page.get_by_test_id("jump-next").click()
    assert picks(page)["token"]["position"] == 2500
    row, column, _ = picks(page)["tileView"]
    assert (row, column) == (pytest.approx(2500.5, abs=1), pytest.approx(2500.5, abs=1))
    page.get_by_test_id("jump").fill("no such word")
    expect(page.get_by_test_id("jump-hits")).to_have_text("not found")


@pytest.mark.full
def test_sinks_are_named_and_taken_out_on_demand(open_long: Open, weights: Weights) -> None:
    page = open_long("view=heat&heads=L0H2")
    expect(page.get_by_test_id("sinks")).to_have_text("“<s>” 0")
    page.get_by_test_id("without-sinks").check()
    eventually(page, lambda: "withoutSinks=true" in page.url)
    page.wait_for_selector(f"{READY}[data-without=sinks]")
    left = weights("L0H2").copy()
    left[:, 0] = 0
    left[1:] /= left[1:].sum(1, keepdims=True)
    strongest, _ = pooled(left, 4)
    places = [
        (16 * row + 8, 16 * column + 8) for row in range(9, 180, 30) for column in range(1, 9)
    ]
    wanted = np.array([strongest[row // 16, column // 16] for row, column in places])
    assert_coloured(colours_at(page, places), wanted)
    page.keyboard.press("u")
    page.wait_for_selector(f"{READY}[data-without='']")
    assert picks(page)["withoutSinks"] is False


@pytest.mark.full
def test_the_address_brings_view_and_cell_back(open_long: Open) -> None:
    page = open_long("view=heat&heads=L0H1&tileView=[1500,1480,60]&pooled=mean")
    page.mouse.click(*place_of(page, 1500, 1481))
    before = picks(page)
    assert before["token"] == {"side": "query", "position": 1500}
    assert before["key"] == 1481
    eventually(page, lambda: "key=1481" in page.url)
    page.reload()
    page.wait_for_selector(READY)
    assert picks(page) == before


@pytest.mark.full
def test_lines_show_a_window_around_the_picked_cell(open_long: Open, weights: Weights) -> None:
    page = open_long("view=heat&heads=L0H3&tileView=[2000,1000,60]")
    page.mouse.click(*place_of(page, 2000, 2000 - BACK))
    weight = weights("L0H3")[2000, 2000 - BACK]
    expect(page.get_by_test_id(f"long-partner-{2000 - BACK}")).to_be_visible()
    page.get_by_test_id("view-head").click()
    expect(page.get_by_test_id("window")).to_have_text(
        "tokens 1,936–2,063 of 3,000 look at 936–1,063"
    )
    key = page.get_by_test_id("key-0-64")
    expect(key).to_be_visible()
    told = float(key.get_attribute("data-weight") or 0)
    assert told == pytest.approx(weight, abs=2 / 65535)  # a root in 65535ths
    page.get_by_test_id("window-next").click()
    expect(page.get_by_test_id("window")).to_contain_text("tokens 2,000–2,127")
    page.get_by_test_id("window-go").fill("50")
    page.get_by_test_id("window-go").press("Enter")
    expect(page.get_by_test_id("window")).to_have_text("tokens 0–127 of 3,000")


def test_all_heads_are_small_overviews_and_a_click_opens_one(open_long: Open) -> None:
    page = open_long("view=model", "[data-testid=long-heads][data-missing='0']")
    inked = """() => [...document.querySelectorAll('.aa-long-grid canvas')].map((canvas) => {
      const { data } = canvas.getContext('2d').getImageData(0, 0, 128, 128);
      return new Set(new Uint32Array(data.buffer)).size;
    })"""
    assert len(page.evaluate(inked)) == 4
    eventually(page, lambda: min(page.evaluate(inked)) > 3)
    page.get_by_test_id("thumb-L0H3").click()
    page.wait_for_selector(f"{READY}[data-head=L0H3]")
    assert picks(page)["heads"] == ["L0H3"]


def test_a_short_input_keeps_its_plain_heat_map_and_other_views_say_what_is_too_long(
    open_long: Open,
) -> None:
    page = open_long("view=neuron", "[data-testid=too-long]")
    expect(page.get_by_test_id("too-long")).to_contain_text("3,000 tokens")
    page.get_by_test_id("too-long-heat").click()
    page.wait_for_selector(READY)
    page.keyboard.press("[")
    expect(page.get_by_test_id("heat-canvas")).to_be_visible()
    assert picks(page)["tileView"] is None


@pytest.mark.full
def test_a_tile_that_cannot_be_had_is_a_sentence_and_is_asked_for_again(open_long: Open) -> None:
    page = open_long("view=heat&heads=L0H1")
    failing = re.compile(r"/api/tile/")
    page.route(
        failing,
        lambda route: route.fulfill(path=None, body=_failure("the disk is gone"), status=200),
    )
    page.evaluate("attentionAtlas.setPicks({tileView: [500, 400, 60]})")
    expect(page.get_by_test_id("coarse")).to_contain_text("The disk is gone")
    page.unroute(failing)
    page.get_by_text("try again").click()
    page.wait_for_selector(READY)
    expect(page.get_by_test_id("coarse")).to_have_count(0)


def _failure(sentence: str) -> bytes:
    header = f'{{"error":"{sentence}"}}'.encode()
    return len(header).to_bytes(4, "little") + header


@pytest.mark.full
def test_hidden_tokens_are_taken_out_of_the_map(open_long: Open, weights: Weights) -> None:
    page = open_long("view=heat&heads=L0H2")
    page.get_by_test_id("hide-first").click()
    page.wait_for_selector(f"{READY}[data-without='0']")
    left = weights("L0H2").copy()
    left[:, 0] = 0
    left[1:] /= left[1:].sum(1, keepdims=True)
    strongest, _ = pooled(left, 4)
    places = [(16 * row + 8, 24) for row in range(9, 180, 20)]
    wanted = np.array([strongest[row // 16, column // 16] for row, column in places])
    assert_coloured(colours_at(page, places), wanted)
    page.get_by_test_id("undo").click()
    page.wait_for_selector(f"{READY}[data-without='']")


def test_a_saved_page_has_the_overview_and_says_what_needs_a_server(
    page: Page, built: None, atlas: aa.Atlas, tmp_path: Path
) -> None:
    saved = tmp_path / "long.html"
    save_page(saved, atlas, {"tab": "text", "view": "heat", "input": 1, "heads": ["L0H1"]})
    page.goto(saved.as_uri())
    page.wait_for_selector(READY)
    assert len(np.unique(colours_at(page, [(2000, 1000), (1000, 2000)]), axis=0)) == 2
    page.get_by_test_id("tile-stage").focus()
    for _ in range(3):
        page.keyboard.press("+")
    expect(page.get_by_test_id("coarse")).to_contain_text(
        "open the atlas with attention-atlas serve"
    )
    expect(page.get_by_text("try again")).to_have_count(0)
    page.get_by_test_id("view-head").click()
    expect(page.get_by_test_id("sorry")).to_contain_text("Lines of a long input need a server")


def test_a_long_input_fits_a_small_dark_window(open_long: Open) -> None:
    page = open_long("view=heat&heads=L0H2&theme=dark")
    page.set_viewport_size({"width": 900, "height": 700})
    page.wait_for_selector(READY)
    assert page.evaluate("document.documentElement.scrollWidth") <= 900
    for name in ("jump", "zoom-all", "without-sinks", "legend-name", "seen"):
        expect(page.get_by_test_id(name)).to_be_in_viewport()


def test_two_fingers_zoom_around_their_middle(open_long: Open) -> None:
    page = open_long("view=heat&heads=L0H1&tileView=[1500,1480,400]")
    x, y = (round(place) for place in place_of(page, 1500, 1480))
    under, cell = weight_under(page, x, y), geometry(page)[2]
    touch = page.context.new_cdp_session(page)

    def fingers(kind: str, apart: int) -> None:
        points = [{"x": x - apart, "y": y, "id": 0}, {"x": x + apart, "y": y, "id": 1}]
        touched = [] if kind == "touchEnd" else points
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": touched})

    fingers("touchStart", 40)
    for apart in (50, 60, 80):
        fingers("touchMove", apart)
    fingers("touchEnd", 80)
    eventually(page, lambda: geometry(page)[2] > 1.5 * cell)
    zoomed = geometry(page)[2]
    assert zoomed == pytest.approx(2 * cell, rel=0.02)
    # Fingers move one after the other, so the middle wanders by a few pixels.
    assert weight_under(page, x, y) == pytest.approx(under, abs=20 / zoomed)
