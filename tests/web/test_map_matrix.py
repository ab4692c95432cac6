"""All heads as small maps: what is drawn, the ways in and out, colours, search."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, Route, expect

from tests.web.maps import (
    GREEN,
    PAPER,
    PATIENCE,
    PINK,
    addressed,
    alone,
    corner,
    enter,
    eventually,
    inked,
    painted,
    panel,
    picks,
    pixels,
    settled,
    spots,
)

Open = Callable[..., Page]
Mapped = dict[str, Any]


@pytest.mark.parametrize("name", ["gpt-map", "bert-map"])
def test_every_point_of_every_head_is_drawn_where_the_layout_says(
    name: str, open_map: Open, mapped: Mapped
) -> None:
    page = open_map(name)
    picture, (left, top) = pixels(page), corner(page)
    layout = mapped[name].layout("pca")
    count = len(layout.groups[next(iter(layout.groups))].query_tokens)
    for head in ("L0H0", "L3H2", "L5H5"):
        at = np.rint(spots(page, head, layout.of(head)[0]) - (left, top)).astype(int)
        near = picture[at[:, 1] - 1, at[:, 0] - 1], picture[at[:, 1], at[:, 0]]
        drawn = np.any([np.abs(one.astype(int) - PAPER).max(1) > 6 for one in near], axis=0)
        assert drawn.mean() > 0.99
        for point in alone(at.astype(float), 7)[:20]:
            expected = GREEN if point < count else PINK
            assert np.abs(picture[at[point, 1], at[point, 0]].astype(int) - expected).max() < 90
    outside = inked(picture)
    for head in mapped[name].heads()["head"]:
        x, y, side = panel(page, head)
        cut = (
            slice(int(y - top), int(y - top + side) + 1),
            slice(int(x - left), int(x - left + side) + 1),
        )
        assert outside[cut].any(), head
        outside[cut] = False
    assert not outside.any(), "nothing is drawn between the panels"


# A canvas is 300 × 150 until it is given a size.
SIZED = """() => { const canvas = document.querySelector('[data-testid=map-canvas]');
  return canvas.clientWidth > 0 && canvas.width === canvas.clientWidth; }"""


def test_the_canvas_has_its_size_before_the_points_arrive(
    page: Page, map_url: Callable[..., str]
) -> None:
    """A new size waits until all points are in the graphics memory, which the first frame pays."""
    held: list[Route] = []
    page.route("**/api/map/**", lambda route: held.append(route))
    page.goto(map_url("gpt-map"))
    page.wait_for_selector("[data-testid=map-canvas]", timeout=PATIENCE)
    eventually(page, lambda: page.evaluate(SIZED))
    assert held and not page.query_selector("[data-testid=panel-L0H0]")
    for route in held:
        route.continue_()
    settled(page)
    assert page.query_selector("[data-testid=panel-L0H0]")


LOST = """() => document.querySelector('[data-testid=map-canvas]').getContext('webgl2')
  .isContextLost()"""


@pytest.mark.full
def test_the_wheel_goes_into_the_head_under_the_cursor_and_out_again_without_a_jump(
    open_map: Open,
) -> None:
    page = open_map("gpt-map")
    start = panel(page, "L2H3")
    x, y = round(start[0] + 0.3 * start[2]), round(start[1] + 0.6 * start[2])
    across, down = (x - start[0]) / start[2], (y - start[1]) / start[2]
    page.mouse.move(x, y)
    sides = [start[2]]
    entered = []
    for turn in [-120] * 9 + [120] * 9:
        page.mouse.wheel(0, turn)
        painted(page)
        left, top, side = panel(page, "L2H3")
        sides.append(side)
        entered.append(picks(page)["mapHead"])
        if abs(side - start[2]) > 0.02 * start[2]:  # all in view at the end: everything fits again
            assert (x - left) / side == pytest.approx(across, abs=0.004)
            assert (y - top) / side == pytest.approx(down, abs=0.004)
            assert max(sides[-1] / sides[-2], sides[-2] / sides[-1]) < 1.31
    assert sides[9] > 4 * start[2]
    eventually(page, lambda: panel(page, "L2H3") == pytest.approx(start, abs=0.6))
    eventually(page, lambda: picks(page)["mapHead"] is None)
    for _ in range(9):
        page.mouse.wheel(0, -120)
    settled(page)
    assert picks(page)["mapHead"] == "L2H3"
    assert picks(page)["heads"] == ["L2H3"]
    expect(page.get_by_test_id("map-head")).to_have_text("L2H3")


def test_click_arrows_enter_and_escape_walk_over_heads(open_map: Open) -> None:
    page = open_map("bert-map")
    enter(page, "L1H1")
    assert picks(page)["mapHead"] == "L1H1"
    page.get_by_test_id("go-next-head").click()
    assert picks(page)["mapHead"] == "L1H2"
    page.keyboard.press("ArrowDown")
    assert picks(page)["mapHead"] == "L2H2"
    assert picks(page)["layer"] == 2
    page.keyboard.press("Escape")
    settled(page)
    assert picks(page)["mapHead"] is None
    page.keyboard.press("ArrowRight")
    assert picks(page)["heads"] == ["L2H3"]
    assert picks(page)["mapHead"] is None
    page.keyboard.press("Enter")
    assert picks(page)["mapHead"] == "L2H3"
    page.get_by_test_id("all-maps").click()
    assert picks(page)["mapHead"] is None


@pytest.mark.full
def test_a_link_brings_the_view_back_and_back_undoes_a_step(open_map: Open) -> None:
    page = open_map("gpt-map")
    page.get_by_test_id("colour").select_option("mod5")
    enter(page, "L3H1")
    eventually(page, lambda: "L3H1" in page.url and "mod5" in page.url)
    address = page.url
    page.mouse.wheel(0, -200)
    page.mouse.move(600, 400)
    settled(page)
    addressed(page, address)
    before, address = panel(page, "L3H1"), page.url
    page.goto("about:blank")
    page.goto(address)
    page.wait_for_selector("html[data-state=ready]")
    settled(page)
    assert picks(page)["colour"] == "mod5"
    assert panel(page, "L3H1") == pytest.approx(before, abs=2)
    entered = page.url
    page.keyboard.press("Escape")
    eventually(page, lambda: picks(page)["mapHead"] is None)
    addressed(page, entered)
    page.go_back()
    eventually(page, lambda: picks(page)["mapHead"] == "L3H1")


def mapped_colours(page: Page) -> list[str]:
    names: list[str] = (
        page.get_by_test_id("colour")
        .locator("option")
        .evaluate_all("all => all.map(one => one.value).filter(one => one !== 'side')")
    )
    assert {"position", "mod5", "norm", "frequency", "length", "sentence_length"} <= {*names}
    return names


@pytest.mark.full
def test_a_new_colour_changes_no_place(open_map: Open) -> None:
    page = open_map("gpt-map")
    before = pixels(page)
    seen = [before]
    for colour in mapped_colours(page):
        page.get_by_test_id("colour").select_option(colour)
        settled(page)
        now = pixels(page)
        least = 0.99 if colour == "direction" else 0.999  # its middle is almost as light as paper
        assert (inked(now) == inked(before)).mean() > least, colour
        assert all((now != other).any() for other in seen), colour
        seen.append(now)
        label = page.locator(f"option[value={colour}]").inner_text()
        expect(page.get_by_test_id("map-legend")).to_contain_text(label)
    page.get_by_test_id("colour").select_option("side")
    page.get_by_test_id("palette").check()
    settled(page)
    safe = pixels(page)
    assert (safe == (0x2B, 0x7B, 0xBA)).all(2).any()
    assert (safe == (0xE1, 0x81, 0x2C)).all(2).any()
    assert not (safe == GREEN).all(2).any()


def test_legends_say_their_range(open_map: Open, mapped: Mapped) -> None:
    page = open_map("gpt-map", "colour=sentence_length")
    tokens = mapped["gpt-map"].tokens()
    lengths = tokens.groupby("input").size()
    legend = page.get_by_test_id("map-legend")
    expect(legend).to_contain_text(str(lengths.min()))
    expect(legend).to_contain_text(str(lengths.max()))


def test_search_counts_marks_and_ranks(open_map: Open, mapped: Mapped) -> None:
    page = open_map("planted", "map=umap-2d")
    words = mapped["planted"].tokens()
    there = int((words["text"].str.lower() == "cat").sum())
    plain = pixels(page)
    page.keyboard.press("/")
    page.keyboard.type("CAT")
    expect(page.get_by_test_id("search-count")).to_contain_text(f"{there} tokens")
    settled(page)
    found = pixels(page)
    strong = np.abs(found.astype(int) - PAPER).max(2) > 80
    assert 0 < strong.sum() < 0.7 * (np.abs(plain.astype(int) - PAPER).max(2) > 80).sum()
    page.get_by_test_id("search").fill("^(cat|dog|horse|fox|goat)$")
    page.get_by_test_id("search-regex").click()
    ranked = page.locator("[data-testid^=ranked-L]")
    expect(ranked.first).to_be_visible()
    order = [one.removesuffix(" ") for one in ranked.all_inner_texts()]
    # L0H2 knows what words mean, L0H0 knows only positions.
    assert order.index("L0H2") < order.index("L0H0")
    assert "mean distance" in (
        page.get_by_test_id("spread-definition").get_attribute("title") or ""
    )
    page.get_by_test_id("ranked-L0H2").click()
    assert picks(page)["mapHead"] == "L0H2"


def test_a_search_that_finds_nothing_or_cannot_be_read_says_so(open_map: Open) -> None:
    page = open_map("gpt-map")
    page.get_by_test_id("search").fill("zebra")
    expect(page.get_by_test_id("search-count")).to_have_text(
        "No token on this map matches “zebra”. "
        "Try “start” for the beginning of a word, or fewer words."
    )
    page.get_by_test_id("search-regex").click()
    page.get_by_test_id("search").fill("(the")
    expect(page.get_by_test_id("search-trouble")).to_contain_text(
        "“(the” is not a regular expression"
    )
    page.get_by_test_id("search-prefix").click()
    page.get_by_test_id("search").fill("th")
    expect(page.get_by_test_id("search-count")).to_contain_text("tokens in 4 inputs")


def test_projection_and_dimensions_change_all_heads_at_once(open_map: Open) -> None:
    page = open_map("gpt-map")
    flat = pixels(page)
    page.get_by_test_id("dims-3").click()
    settled(page)
    solid = pixels(page)
    left, top = corner(page)
    for head in ("L0H0", "L2H4", "L5H5"):
        x, y, side = panel(page, head)
        cut = slice(int(y - top), int(y - top + side)), slice(int(x - left), int(x - left + side))
        assert (solid[cut] != flat[cut]).any()
        assert inked(solid[cut]).any()
    assert picks(page)["map"] == "pca-3d"
    page.goto("about:blank")
    other = open_map("planted", "map=pca-2d")
    before = pixels(other)
    other.get_by_test_id("method-umap").click()
    settled(other)
    assert (pixels(other) != before).any()


@pytest.mark.full
def test_a_lost_picture_comes_back(open_map: Open) -> None:
    page = open_map("gpt-map", "colour=position")
    before = pixels(page)
    page.evaluate(
        """() => { const canvas = document.querySelector('[data-testid=map-canvas]');
          window.lose = canvas.getContext('webgl2').getExtension('WEBGL_lose_context');
          lose.loseContext(); }"""
    )
    eventually(page, lambda: page.evaluate(LOST))
    page.evaluate("() => lose.restoreContext()")
    eventually(page, lambda: (pixels(page) == before).all())
    page.get_by_test_id("colour").select_option("mod5")
    settled(page)
    assert (pixels(page) != before).any()


def test_without_webgl_a_sentence_says_so_and_the_rest_lives(
    page: Page, map_url: Callable[..., str]
) -> None:
    page.add_init_script(
        """const plain = HTMLCanvasElement.prototype.getContext;
        HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
          return kind === 'webgl2' ? null : plain.call(this, kind, ...rest); };"""
    )
    page.goto(map_url("gpt-map"))
    expect(page.get_by_test_id("sorry")).to_contain_text("WebGL2")
    page.get_by_test_id("tab-text").click()
    expect(page.get_by_test_id("lines-0")).to_be_visible()


def test_a_word_that_does_not_occur_offers_near_words(open_map: Open) -> None:
    page = open_map("gpt-map", "tab=map")
    page.get_by_test_id("search").fill("docotr cat")
    missing = page.get_by_test_id("search-missing")
    expect(missing).to_contain_text("“docotr” does not occur; near it:")
    page.get_by_test_id("near-word").filter(has_text="doctor").click()
    expect(page.get_by_test_id("search")).to_have_value("doctor cat")
    expect(missing).to_have_count(0)
    expect(page.get_by_test_id("search-count")).to_contain_text("2 tokens in 2 inputs")


def test_phrases_patterns_and_columns_mark_their_points(open_map: Open, mapped: Mapped) -> None:
    tokens = mapped["gpt-map"].tokens()
    page = open_map("gpt-map", "tab=map")
    count = page.get_by_test_id("search-count")
    for search, found in (
        ("position<3", int((tokens["position"] < 3).sum())),
        ("input:2 position>=4", int(((tokens["input"] == 2) & (tokens["position"] >= 4)).sum())),
        ("special:yes", int(tokens["special"].sum())),
        ("/^[aeiou]/", int(tokens["text"].str.match(r"^Ġ?[aeiouAEIOU]").sum())),
    ):
        page.get_by_test_id("search").fill(search)
        expect(count).to_contain_text(f"{found} tokens in")
    page.get_by_test_id("search").fill('"the dog lay"')
    expect(count).to_contain_text("3 tokens in 1 inputs")
    expect(page.get_by_test_id("ranked").locator("li").first).to_be_visible()
    page.get_by_test_id("search").fill("/(a+)+$/")
    expect(page.get_by_test_id("search-trouble")).to_contain_text("can take forever")


def test_the_help_lists_the_columns_and_adds_them_to_the_search(open_map: Open) -> None:
    page = open_map("gpt-map", "tab=map")
    page.get_by_test_id("search").fill("the")
    page.get_by_test_id("search-help").click()
    expect(page.get_by_test_id("search-forms")).to_contain_text("these words in sequence")
    page.get_by_test_id("field-position").click()
    expect(page.get_by_test_id("search")).to_have_value("the position<5")
    eventually(page, lambda: picks(page)["search"] == "the position<5")
    page.get_by_test_id("search").fill("kind:verb")
    expect(page.get_by_test_id("search-trouble")).to_contain_text("it has letters")
