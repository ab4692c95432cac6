"""One head large: points, their inputs, lines, the sentence beside it, the way to the close-ups."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from playwright.sync_api import Page, expect

from tests.web.maps import (
    PAPER,
    addressed,
    alone,
    corner,
    enter,
    eventually,
    inked,
    painted,
    picks,
    pixels,
    settled,
    spots,
)

Open = Callable[..., Page]
Mapped = dict[str, Any]
HEAD = "L3H2"
PINNED = f"tab=map&mapHead={HEAD}&token={{'side':'query','position':2}}&pinned=true"


def points(page: Page, atlas: Any, head: str = HEAD) -> tuple[npt.NDArray[np.float64], Any]:
    """Where the points are in the window, and a table of what they are."""
    layout = atlas.layout("pca")
    group = next(iter(layout.groups.values()))
    tokens = atlas.tokens().set_index("token")
    numbers = np.concatenate([group.query_tokens, group.key_tokens])
    table = tokens.loc[numbers].reset_index()
    table["side"] = ["query"] * len(group.query_tokens) + ["key"] * len(group.key_tokens)
    return spots(page, head, layout.of(head)[0]), table


def pick(page: Page, atlas: Any) -> Any:
    """Click on a point that stands alone; gives back what it is."""
    at, table = points(page, atlas)
    point = int(alone(at, 16)[0])
    x, y = at[point].tolist()
    page.mouse.move(x, y)
    tip = page.get_by_test_id("point-tip")
    expect(tip).to_contain_text(f"{table['side'][point]} of token {table['position'][point]}")
    page.mouse.click(x, y)
    settled(page)
    return table.loc[point]


@pytest.mark.full
@pytest.mark.parametrize("name", ["gpt-map", "bert-map"])
def test_a_click_on_a_point_lights_up_its_input_with_lines_to_the_top_two_keys(
    name: str, open_map: Open, mapped: Mapped
) -> None:
    atlas = mapped[name]
    page = open_map(name, f"tab=map&mapHead={HEAD}")
    chosen = pick(page, atlas)
    now = picks(page)
    assert now["input"] == chosen["input"]
    assert now["token"] == {"side": chosen["side"], "position": chosen["position"]}
    assert now["pinned"]
    at, table = points(page, atlas)
    (left, top), picture = corner(page), pixels(page)
    where = np.rint(at - (left, top)).astype(int)
    strength = np.abs(picture[where[:, 1], where[:, 0]].astype(int) - PAPER).max(1)
    lit = (table["input"] == chosen["input"]).to_numpy()
    assert strength[lit].mean() > 3 * strength[~lit].mean()
    assert lines(page) == expected_lines(atlas.weights(int(chosen["input"]), HEAD))
    expect(page.get_by_test_id("sentence-view")).to_be_visible()
    page.get_by_test_id("map-lines").uncheck()
    assert lines(page) == 0
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("sentence-view")).to_have_count(0)
    assert picks(page)["mapHead"] == HEAD


def test_a_click_on_a_point_asks_for_the_one_layer_that_is_drawn(
    open_map: Open, mapped: Mapped
) -> None:
    page = open_map("gpt-map", f"tab=map&mapHead={HEAD}")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url.partition("/api/")[2]))
    chosen = pick(page, mapped["gpt-map"])
    expect(page.get_by_test_id("lines-0")).to_be_visible()
    edges = [path for path in asked if path.startswith("edges/")]
    assert edges == [f"edges/{chosen['input']}/decoder/3"]
    page.get_by_test_id("to-lines").click()
    page.get_by_test_id("view-model").click()
    eventually(page, lambda: asked.count(f"edges/{chosen['input']}/decoder") == 1)


def lines(page: Page) -> int:
    figure: str = page.evaluate("attentionAtlas.svg()")
    return figure.count('stroke="#e0a800"')


def expected_lines(weights: npt.NDArray[np.float32]) -> int:
    strongest = np.sort(weights, axis=1)[:, ::-1][:, :2]
    return int((strongest >= 0.05).sum())


def test_hidden_tokens_count_for_the_lines_of_the_map_too(open_map: Open, mapped: Mapped) -> None:
    atlas = mapped["gpt-map"]
    page = open_map(
        "gpt-map",
        f"{PINNED}&input=1",
    )
    expect(page.get_by_test_id("lines-0")).to_be_visible()
    page.get_by_test_id("hide-first").click()
    weights = atlas.weights(1, HEAD).copy()
    weights[0] = 0
    weights[:, 0] = 0
    left = weights.sum(1, keepdims=True)
    expected = expected_lines(np.divide(weights, left, where=left > 0, out=weights))
    eventually(page, lambda: lines(page) == expected)


def test_the_sentence_beside_the_map_is_the_head_view_and_the_mean_is_right(
    open_map: Open, mapped: Mapped
) -> None:
    atlas = mapped["bert-map"]
    page = open_map("bert-map", PINNED)
    page.get_by_test_id("query-0-2").hover()
    expect(page.get_by_test_id("lines-0")).to_contain_text(HEAD)
    picture = page.get_by_test_id("mean-canvas").bounding_box()
    assert picture
    inputs = [atlas.weights(i, HEAD) for i in range(len(atlas))]
    rows = np.array([sum(one[4, j] for one in inputs if j < one.shape[1]) for j in range(64)])
    mean = rows[1] / rows.sum()
    side = min(64, max(len(one) for one in inputs))
    cell = picture["width"] / side
    page.mouse.move(picture["x"] + 1.5 * cell, picture["y"] + 4.5 * cell)
    told = page.get_by_test_id("mean-cell")
    expect(told).to_contain_text("position 4 → 1")
    assert float(told.inner_text().split(":")[1]) == pytest.approx(mean, abs=0.002)


def test_from_a_point_to_lines_and_neurons_in_one_click_and_back(
    open_map: Open, mapped: Mapped
) -> None:
    page = open_map("gpt-map", f"tab=map&mapHead={HEAD}")
    chosen = pick(page, mapped["gpt-map"])
    page.get_by_test_id("to-neurons").click()
    expect(page.get_by_test_id("neuron-title")).to_contain_text(HEAD)
    now = picks(page)
    assert (now["tab"], now["view"], now["heads"]) == ("text", "neuron", [HEAD])
    assert now["token"] == {"side": chosen["side"], "position": chosen["position"]}
    page.get_by_test_id("tab-map").click()
    settled(page)
    assert picks(page)["mapHead"] == HEAD
    expect(page.get_by_test_id("sentence-view")).to_be_visible()
    page.get_by_test_id("to-lines").click()
    expect(page.get_by_test_id("lines-0")).to_be_visible()
    page.get_by_test_id("layer").select_option("4")
    page.get_by_test_id("query-0-3").click()
    page.get_by_test_id("to-map").click()
    settled(page)
    assert picks(page)["mapHead"] == "L4H2"
    assert picks(page)["token"]["position"] == 3


@pytest.mark.full
def test_dots_grow_with_their_vectors_and_lengths_can_be_read(
    open_map: Open, mapped: Mapped
) -> None:
    page = open_map("planted", "tab=map&map=pca-2d&mapHead=L0H4&labels=false")
    even = inked(pixels(page)).sum()
    page.get_by_test_id("size-by-norm").check()
    eventually(page, lambda: inked(pixels(page)).sum() != even)
    page.get_by_test_id("colour").select_option("norm")
    settled(page)
    atlas = mapped["planted"]
    lengths = [
        np.linalg.norm(get("L0H4", i), axis=1)
        for i in range(len(atlas))
        for get in (atlas.queries, atlas.keys)
    ]
    legend = page.get_by_test_id("map-legend")
    expect(legend).to_contain_text(f"{min(one.min() for one in lengths):.3g}"[:3])
    gap = contrast(page, atlas)
    page.get_by_test_id("scaled-norms").check()
    settled(page)
    # L0H4 has short queries and long keys; scaled for the map they are alike.
    assert contrast(page, atlas) < 0.5 * gap


def contrast(page: Page, atlas: Any) -> float:
    """How much darker keys are than queries."""
    at, table = points(page, atlas, "L0H4")
    left, top = corner(page)
    where = np.rint(at - (left, top)).astype(int)
    light = pixels(page)[where[:, 1], where[:, 0]].astype(float).mean(1)
    query = (table["side"] == "query").to_numpy()
    return float(abs(light[query].mean() - light[~query].mean()))


def test_names_can_be_shown_and_fidelity_is_told_with_its_meaning(
    open_map: Open, mapped: Mapped
) -> None:
    page = open_map("gpt-map", f"tab=map&mapHead={HEAD}&labels=false")
    figures = mapped["gpt-map"].layout("pca").of(HEAD)[1]
    shown = f"{figures['map.correlation']:.2f}".replace("-0.", "−.").replace("0.", ".")
    page.get_by_test_id("fidelity").click()
    expect(page.get_by_test_id("figure-correlation")).to_contain_text(shown)
    expect(page.get_by_test_id("fidelity-table")).to_contain_text("Spearman")
    over = "() => document.querySelectorAll('.aa-stage canvas')[1].toDataURL()"
    painted(page)
    bare = page.evaluate(over)
    page.get_by_test_id("map-labels").check()
    eventually(page, lambda: page.evaluate(over) != bare)
    page.get_by_test_id("map-labels").uncheck()
    eventually(page, lambda: page.evaluate(over) == bare)


@pytest.mark.full
def test_a_solid_map_turns_under_the_hand_and_still_names_its_points(open_map: Open) -> None:
    page = open_map("gpt-map", f"tab=map&map=pca-3d&mapHead={HEAD}")
    before, start = pixels(page), page.url
    left, top = corner(page)
    page.mouse.move(left + 300, top + 300)
    page.mouse.down()
    page.mouse.move(left + 420, top + 340, steps=4)
    page.mouse.up()
    settled(page)
    after = pixels(page)
    assert (after != before).any()
    rows, columns = np.nonzero(inked(after))
    place = len(rows) // 2
    page.mouse.move(left + float(columns[place]), top + float(rows[place]))
    expect(page.get_by_test_id("point-tip")).to_be_visible()
    addressed(page, start)
    address = page.url
    page.goto("about:blank")
    page.goto(address)
    page.wait_for_selector("html[data-state=ready]")
    settled(page)
    assert (pixels(page) == after).mean() > 0.98


@pytest.mark.full
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_narrow_windows_and_both_themes_keep_the_map_in_view(theme: str, open_map: Open) -> None:
    page = open_map("gpt-map", f"theme={theme}")
    page.set_viewport_size({"width": 900, "height": 700})
    settled(page)
    enter(page, HEAD)
    assert picks(page)["mapHead"] == HEAD
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 900
    paper = pixels(page)[5, -5]
    assert (paper > 200).all() if theme == "light" else (paper < 60).all()
