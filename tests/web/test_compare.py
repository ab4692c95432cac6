"""Two models side by side in a real Chromium: what is shown is what was computed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

import attention_atlas as aa
from attention_atlas.page.hosts.export import save_comparison
from tests.web.maps import eventually

pytestmark = pytest.mark.full

Open = Callable[..., Page]
HASH = "tab=heads&versus=[0]&heads=L3H2"


@pytest.fixture(scope="session")
def made(subjects: dict[str, Any]) -> Any:
    return aa.compare(subjects["gpt"], subjects["bert"])


def numbers(page: Page, table: str) -> list[list[float]]:
    rows = page.locator(f"[data-testid={table}] tbody tr")
    return [
        [float(text) for text in row.locator("td.aa-number").all_inner_texts()]
        for row in rows.all()
    ]


def test_the_heads_tab_leads_to_the_comparison_and_back(open_page: Open) -> None:
    page = open_page("gpt", "tab=heads")
    page.get_by_test_id("versus-0").check()
    expect(page.get_by_test_id("compare")).to_be_visible()
    expect(page.get_by_test_id("compare-note")).to_contain_text("aligned by characters")
    eventually(page, lambda: "versus" in page.url)
    page.go_back()
    expect(page.get_by_test_id("head-table")).to_be_visible()


def test_bars_and_tables_show_the_computed_statistics(open_page: Open, made: Any) -> None:
    page = open_page("gpt", HASH)
    for place, name in enumerate(made.names):
        for word, frame in (("ri", made.statistics), ("ri-chosen", made.statistics_chosen)):
            shown = page.get_by_test_id(f"{word}-{place}").text_content()
            assert shown == f"{frame[name]['RI']:.6f}"
    long = [
        float(page.get_by_test_id(f"ri-chosen-bar-{at}").get_attribute("width") or 0)
        for at in (0, 1)
    ]
    computed = made.statistics_chosen.loc["RI"].tolist()
    assert long[0] / long[1] == pytest.approx(computed[0] / computed[1], rel=1e-5)
    for table, frame in (
        ("statistics-all", made.statistics),
        ("statistics-chosen", made.statistics_chosen),
        ("statistics-kinds", made.kinds),
    ):
        assert np.array(numbers(page, table)) == pytest.approx(frame.to_numpy(), abs=6e-7)


def test_importance_is_side_by_side_and_a_head_is_picked_everywhere(
    open_page: Open, subjects: dict[str, Any]
) -> None:
    page = open_page("gpt", HASH)
    page.get_by_test_id("compare-by").select_option("importance")
    for model, name in enumerate(("gpt", "bert")):
        for head in ("L0H0", "L4H5"):
            largest = subjects[name].weights(0, head).max()
            square = page.get_by_test_id(f"square-{model}-{head}")
            assert square.get_attribute("aria-label") == f"{head}: importance {largest:.3f}"
    page.get_by_test_id("square-0-L4H5").click()
    expect(page.get_by_test_id("card").locator("h2")).to_have_text("L4H5")
    page.get_by_test_id("square-1-L2H0").click()  # leads to the other model's own page
    page.wait_for_selector("[data-testid=card] h2:has-text('L2H0')")
    expect(page.get_by_test_id("model")).to_have_text("builtin:bert")


def test_reactions_are_painted_from_the_weights(open_page: Open, subjects: dict[str, Any]) -> None:
    page = open_page("gpt", HASH)
    page.wait_for_selector("[data-testid=reaction-1]")
    for model, name in enumerate(("gpt", "bert")):
        weights = subjects[name].weights(0, "L3H1")
        size = int(page.get_by_test_id(f"reaction-{model}").get_attribute("data-size") or 0)
        left, top = 1 * (size + 3), 3 * (size + 3)
        grey = page.evaluate(
            """([id, left, top, size, n]) => {
              const all = document.querySelector(`[data-testid=${id}]`).getContext('2d');
              const image = all.getImageData(left, top, size, size).data;
              const middle = (at) => Math.floor(((at + 0.5) * size) / n);
              return Array.from({ length: n * n }, (_, at) => {
                const place = 4 * (middle(Math.floor(at / n)) * size + middle(at % n));
                return image[place] + image[place + 1] + image[place + 2];
              });
            }""",
            [f"reaction-{model}", left, top, size, len(weights)],
        )
        # Darker is more: the order of the greys is the order of the weights.
        shown = -np.array(grey, float).reshape(weights.shape)
        assert np.corrcoef(shown.ravel(), np.sqrt(weights).ravel())[0, 1] > 0.97
        importance = [
            subjects[name].weights(0, str(h)).max() for h in subjects[name].heads()["head"]
        ]
        expect(page.get_by_test_id(f"reaction-told-{model}")).to_contain_text(
            f"mean importance {np.mean(importance):.3f}, RI {np.std(importance):.3f}"
        )


def test_heads_that_differ_most_are_listed_with_their_nearest(open_page: Open, made: Any) -> None:
    page = open_page("gpt", HASH)
    rows = page.locator("[data-testid=differ-1] tbody tr")
    expected = made.apart()
    assert rows.count() == 12
    for row, (head, nearest, away) in zip(rows.all(), expected, strict=False):
        assert row.locator("td").all_inner_texts() == [head, nearest, f"{away:.3f}"]
    page.get_by_test_id(f"differ-1-{expected[0][0]}").click()
    expect(page.get_by_test_id("card").locator("h2")).to_have_text(expected[0][0])
    same = made.changed()
    page.get_by_test_id("differ-by").select_option("same")
    first = rows.first.locator("td").all_inner_texts()
    assert first[0] == same[0][0] and first[3] == f"{same[0][1]:.3f}"
    assert page.locator("[data-testid=head-map] circle").count() == 72


def test_three_models_stand_side_by_side(open_page: Open, subjects: dict[str, Any]) -> None:
    page = open_page("gpt", "tab=heads&versus=[0,4]")  # bert, and gpt captured once more
    made: Any = aa.compare(subjects["gpt"], subjects["bert"], subjects["bare"])
    assert page.locator("[data-testid=statistics-chosen] thead th").count() == 4
    for place, name in enumerate(made.names):
        shown = page.get_by_test_id(f"ri-chosen-{place}").text_content()
        assert shown == f"{made.statistics_chosen[name]['RI']:.6f}"
    expect(page.get_by_test_id("reaction-2")).to_be_visible()
    bits = page.locator("[data-testid=differ-2] tbody td.aa-number").all_inner_texts()
    assert bits == ["0.000"] * 12  # every head finds itself again


def test_the_comparison_is_exported_as_a_figure(open_page: Open, made: Any) -> None:
    page = open_page("gpt", HASH)
    page.wait_for_selector("[data-testid=reaction-1]")
    figure = ElementTree.fromstring(page.evaluate("attentionAtlas.svg()"))
    words = ["".join(one.itertext()) for one in figure.iter("{http://www.w3.org/2000/svg}text")]
    ri = f"{made.statistics_chosen.loc['RI'].tolist()[1]:.6f}"
    assert words.count(ri) >= 2  # beside its bar and in the table
    assert any("The farmer offered" in one for one in words)  # the input that the menu names
    assert len(list(figure.iter("{http://www.w3.org/2000/svg}image"))) == 2


def test_what_cannot_be_compared_is_said_in_its_frame(
    browser: Browser, page_url: Callable[..., str]
) -> None:
    page = browser.new_page()  # its console tells of the refusal
    page.goto(page_url("gpt", "tab=heads&versus=[2]"))  # plain attention
    expect(page.get_by_test_id("compare-failure")).to_contain_text("plain attention")
    page.get_by_test_id("versus-2").uncheck()
    expect(page.get_by_test_id("head-table")).to_be_visible()
    page.close()


def test_a_saved_comparison_opens_without_a_server(
    page: Page, subjects: dict[str, Any], made: Any, tmp_path: Path
) -> None:
    save_comparison(tmp_path / "page.html", [subjects["gpt"], subjects["bert"]])
    page.goto((tmp_path / "page.html").as_uri())
    page.wait_for_selector("html[data-state=ready]")
    shown = page.get_by_test_id("ri-chosen-1").text_content()
    assert shown == f"{made.statistics_chosen[made.names[1]]['RI']:.6f}"
    expect(page.get_by_test_id("reaction-1")).to_be_visible()
    page.get_by_test_id("square-0-L3H2").click()
    expect(page.get_by_test_id("card").locator("h2")).to_have_text("L3H2")
