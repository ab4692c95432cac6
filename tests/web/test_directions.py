"""The neuron view along the directions of a head, in a real browser, against NumPy."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, expect

import attention_atlas as aa
from tests.web.maps import eventually

pytestmark = pytest.mark.full

Open = Callable[..., Page]

# Where the middle of a cell of the q × k strip is: its column's heading and the row of its key.
CELL = """([text, key, cell, cells]) => {
  const head = [...document.querySelectorAll('.aa-neuron-heads span')]
    .find(one => one.innerText.startsWith(text)).getBoundingClientRect();
  const row = document.querySelector(`[data-testid=key-0-${key}]`).getBoundingClientRect();
  return [head.left + head.width * (cell + 0.5) / cells, row.top + row.height / 2];
}"""


def test_neurons_become_a_few_directions_that_add_up(
    open_page: Open, subjects: dict[str, Any]
) -> None:
    atlas: aa.Atlas = subjects["gpt"]
    head, row, key = "L2H1", 9, 4
    found = atlas.directions(head)
    a, b, _ = found.coordinates(atlas.queries(head, 0), atlas.keys(head, 0))
    page = open_page(
        "gpt", f"view=neuron&heads={head}&token={{'side':'query','position':{row}}}&pinned=true"
    )
    page.get_by_test_id("basis-directions").click()
    kept = f"{found.count} directions keep {100 * found.kept[found.count]:.0f} %"
    expect(page.get_by_test_id("directions-keep")).to_contain_text(kept)
    parts = a[row] * b[key]
    rest = parts[found.count :].sum()

    def tells(cell: int, expected: float) -> bool:
        page.mouse.move(*page.evaluate(CELL, ["a × b", key, cell, found.count + 1]))
        tip = page.locator(".aa-tip").inner_text()
        number = float(tip.split("=" if "=" in tip else ":")[-1].replace("−", "-"))
        return bool(abs(number - expected) < 2e-3 * max(1, np.abs(parts).max()))

    # rows move while what stands beside them arrives
    expect(page.get_by_test_id("direction-0")).to_be_visible()
    for cell, expected in [(0, parts[0]), (1, parts[1]), (found.count, rest)]:
        eventually(page, partial(tells, cell, expected))
    page.mouse.move(*page.evaluate(CELL, ["softmax", key, 0, 2]))
    weight = atlas.weights(0, head)[row, key]
    expect(page.locator(".aa-tip")).to_contain_text(f"softmax {weight:.4f}")
    ends = {(end.side, end.sign): end.tokens for end in found.ends[0]}
    shown = page.get_by_test_id("direction-0")
    expect(shown).to_contain_text(" ".join(ends["query", 1][:4]))
    expect(shown).to_contain_text(" ".join(ends["key", -1][:4]))
    page.keyboard.press("u")
    expect(page.get_by_test_id("basis-neurons")).to_have_attribute("aria-checked", "true")


def test_a_direction_colours_the_map(
    page: Page, map_url: Callable[..., str], mapped: dict[str, aa.Atlas]
) -> None:
    atlas = mapped["gpt-map"]
    page.goto(map_url("gpt-map", "tab=text&view=neuron&heads=L1H2&basis=directions"))
    page.get_by_test_id("direction-map-1").click()
    legend = page.get_by_test_id("map-legend")
    expect(legend).to_contain_text("direction 2 of L1H2")
    a, b, _ = atlas.directions("L1H2").coordinates(atlas.queries("L1H2"), atlas.keys("L1H2"))
    most = max(np.abs(a[:, 1]).max(), np.abs(b[:, 1]).max())
    expect(legend).to_contain_text(f"{most:.2g}"[:3])


def test_a_saved_page_has_the_directions_it_opens_on(
    page: Page, built: None, subjects: dict[str, Any], tmp_path: Any
) -> None:
    view = aa.neuron_view(subjects["gpt"], head="L2H1", basis="directions")
    page.goto(view.save(tmp_path / "directions.html").as_uri())
    expect(page.get_by_test_id("directions-keep")).to_be_visible()
