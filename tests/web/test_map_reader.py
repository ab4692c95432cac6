"""The reader's test: what the page names as strongest and as nearest is what NumPy finds."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from playwright.sync_api import Page, expect

import attention_atlas as aa
from tests.tolerance import reading_tolerance, unit
from tests.web.maps import SEEN, alone, settled, spots

pytestmark = pytest.mark.full

Open = Callable[..., Page]
Mapped = dict[str, Any]
HEAD, QUERIES, COUNTED = "L3H2", 50, 3
READ = """name => [...document.querySelectorAll(`[data-testid=${name}-list] li[data-position]`)]
  .map(line => [line.dataset.position, line.dataset.weight, line.dataset.distance].map(Number))"""


@dataclass(frozen=True)
class Head:
    """One head of a map: places of all points, what they are, and its atlas."""

    atlas: Any
    places: npt.NDArray[np.float32]
    table: Any  # one row per point: input, position, side

    def seen(self, point: int) -> npt.NDArray[np.bool_]:
        """Which tokens of the other side a token sees: its own input's, as the mask allows."""
        row = self.table.loc[point]
        mask = self.atlas.terms(HEAD, int(row["input"])).seen
        position = int(row["position"])
        return np.asarray(mask[position] if row["side"] == "query" else mask[:, position])

    def weights(self, point: int) -> npt.NDArray[np.float32]:
        row = self.table.loc[point]
        weights = self.atlas.weights(int(row["input"]), HEAD)
        position = int(row["position"])
        return np.asarray(weights[position] if row["side"] == "query" else weights[:, position])

    def distances(self, point: int) -> dict[int, float]:
        """The distance to each visible token of the other side, by position."""
        row, seen = self.table.loc[point], self.seen(point)
        others = self.table[
            (self.table["side"] != row["side"]) & (self.table["input"] == row["input"])
        ]
        away = np.linalg.norm(
            self.places[others.index].astype(float) - self.places[point].astype(float), axis=1
        )
        return {
            int(position): float(distance)
            for position, distance in zip(others["position"], away, strict=True)
            if seen[position]
        }


def read_head(atlas: Any, dims: int = 2) -> Head:
    layout = atlas.layout("pca", dims=dims)
    group = next(iter(layout.groups.values()))
    tokens = atlas.tokens().set_index("token")
    numbers = np.concatenate([group.query_tokens, group.key_tokens])
    table = tokens.loc[numbers].reset_index()
    table["side"] = ["query"] * len(group.query_tokens) + ["key"] * len(group.key_tokens)
    return Head(atlas, layout.of(HEAD)[0], table)


def pick(page: Page, row: Any) -> None:
    token = {"side": row["side"], "position": int(row["position"])}
    picks = {"input": int(row["input"]), "token": token, "pinned": True}
    page.evaluate("picks => attentionAtlas.setPicks(picks)", picks)


def check(page: Page, head: Head, point: int) -> None:
    """The page's two lists for a point are NumPy's; equal values may stand in either order."""
    expect(page.get_by_test_id("true-near")).to_have_attribute("data-at", str(point))
    strongest, nearest = (page.evaluate(READ, name) for name in ("strongest", "nearest"))
    seen, weights = head.seen(point), head.weights(point)
    off = reading_tolerance(head.atlas, int(head.table["input"][point]), HEAD)
    visible = np.flatnonzero(seen & (weights > 0))
    expected = np.sort(weights[visible])[::-1][:COUNTED]
    named = [int(position) for position, _, _ in strongest]
    assert set(named) <= set(visible.tolist()) and len(set(named)) == len(expected)
    np.testing.assert_allclose(weights[named], expected, rtol=0, atol=2 * off)
    np.testing.assert_allclose([told for _, told, _ in strongest], expected, rtol=0, atol=2 * off)
    distances = head.distances(point)
    named = [int(position) for position, _, _ in nearest]
    assert set(named) <= set(distances) and len(set(named)) == min(COUNTED, len(distances))
    # Places are float32 in the map's own units: each coordinate is off by at most u of the largest.
    off = 8 * unit() * float(np.abs(head.places).max())
    best = sorted(distances.values())[:COUNTED]
    np.testing.assert_allclose([distances[position] for position in named], best, rtol=0, atol=off)


@pytest.mark.parametrize("name", ["gpt-map", "bert-map"])
def test_fifty_random_queries_name_the_strongest_and_the_nearest_keys(
    name: str, open_map: Open, mapped: Mapped
) -> None:
    head = read_head(mapped[name])
    page = open_map(name, f"tab=map&mapHead={HEAD}&trueNear=true")
    queries = int((head.table["side"] == "query").sum())
    assert queries >= QUERIES
    for point in np.random.default_rng(0).choice(queries, QUERIES, replace=False).tolist():
        pick(page, head.table.loc[point])
        check(page, head, point)


def test_keys_and_solid_maps_are_read_the_same_way(open_map: Open, mapped: Mapped) -> None:
    head = read_head(mapped["gpt-map"], dims=3)
    page = open_map("gpt-map", f"tab=map&map=pca-3d&mapHead={HEAD}&trueNear=true")
    for point in np.random.default_rng(1).choice(len(head.table), 12, replace=False).tolist():
        pick(page, head.table.loc[point])
        check(page, head, point)


def test_the_point_under_the_cursor_is_read_and_marked(open_map: Open, mapped: Mapped) -> None:
    head = read_head(mapped["gpt-map"])
    page = open_map("gpt-map", f"tab=map&mapHead={HEAD}")
    expect(page.get_by_test_id("true-near")).to_have_count(0)
    page.keyboard.press("t")
    expect(page.get_by_test_id("true-near")).to_contain_text("point at a dot")
    at = spots(page, HEAD, head.places)
    for point in alone(at, 14)[:6].tolist():
        page.mouse.move(*at[point].tolist())
        check(page, head, point)
        figure: str = page.evaluate("attentionAtlas.svg()")
        drawn = min(COUNTED, len(head.distances(point)))
        assert figure.count('stroke="#1d5fd1" stroke-width="2"') == drawn  # squares
        assert figure.count("<circle") == len(page.evaluate(READ, "strongest"))
    page.keyboard.press("t")
    expect(page.get_by_test_id("true-near")).to_have_count(0)
    settled(page)


def test_the_list_says_that_it_is_of_weights_when_lines_show_another(
    open_map: Open, mapped: Mapped
) -> None:
    head = read_head(mapped["gpt-map"])
    page = open_map("gpt-map", f"tab=map&mapHead={HEAD}&trueNear=true")
    pick(page, head.table.loc[3])
    check(page, head, 3)
    expect(page.get_by_test_id("of-weights")).to_have_count(0)
    page.get_by_test_id("shown-contribution").click()
    expect(page.get_by_test_id("of-weights")).to_contain_text(
        "Lines show contribution; this list is of weights"
    )
    check(page, head, 3)  # and it is


def test_a_saved_page_reads_its_own_weights(page: Page, mapped: Mapped, tmp_path: Path) -> None:
    atlas = mapped["gpt-map"]
    head = read_head(atlas)
    path = aa.map_view(atlas, HEAD, "pca-2d").save(tmp_path / "page.html")
    page.add_init_script(SEEN)
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-state=ready]")
    page.evaluate("attentionAtlas.setPicks({ trueNear: true })")
    for point in (3, 9, len(head.table) - 4):
        pick(page, head.table.loc[point])
        check(page, head, point)
