"""What the page says of a map follows the figures of that head, and claims no more."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from tests.web.maps import enter, eventually, inked, panel, picks, pixels, settled

Open = Callable[..., Page]
MARKS = {"L0H0": "●", "L0H1": "◐", "L0H2": "○"}


@pytest.mark.full
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(
    ("head", "grade", "badge", "words"),
    [
        ("L0H0", "most", "near means attended: 94 of 100", "Here near does mean attended: 94"),
        ("L0H1", "part", "in part: 61 of 100", "in part: 61 of 100 (chance 23)"),
        ("L0H2", "little", "keeps little: 31 of 100", "keeps little (31 of 100, chance 24); look"),
    ],
)
def test_badge_tooltip_hint_and_table_follow_the_heads_figures(
    open_map: Open, theme: str, head: str, grade: str, badge: str, words: str
) -> None:
    page = open_map("told", f"tab=map&mapHead={head}&theme={theme}")
    shown = page.get_by_test_id("fidelity")
    expect(shown).to_contain_text(f"{MARKS[head]} {badge}")
    assert shown.get_attribute("data-grade") == grade
    assert words in (shown.get_attribute("title") or "")
    expect(page.get_by_test_id("map-hint")).to_contain_text(words)
    assert contrast(page) >= 4.5  # WCAG AA for small text
    shown.click()
    table = page.get_by_test_id("fidelity-table")
    expect(table).to_contain_text(words)


def contrast(page: Page) -> float:
    """The contrast of the badge's letters on the paper of the page."""
    ink, paper = page.evaluate(
        """() => [getComputedStyle(document.querySelector('[data-testid=fidelity]')).color,
                  getComputedStyle(document.querySelector('.aa')).backgroundColor]
            .map(text => text.match(/[0-9.]+/g).slice(0, 3).map(Number))"""
    )

    def light(colour: list[float]) -> float:
        parts = np.array(colour) / 255
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    low, high = sorted((light(ink), light(paper)))
    return (high + 0.05) / (low + 0.05)


def test_the_table_sets_this_map_beside_pca_shuffled_and_chance(open_map: Open) -> None:
    page = open_map("told", "tab=map&mapHead=L0H0")
    page.get_by_test_id("fidelity").click()
    row = page.get_by_test_id("figure-strongest").locator("td").all_inner_texts()
    assert row == ["strongest near", "", ".94", ".40", ".21", ".20"]
    assert page.get_by_test_id("figure-visible").locator("td").all_inner_texts()[1] == "−.95"
    expect(page.get_by_test_id("fidelity-table")).to_contain_text("three nearest keys")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_test_id("map-head")).to_have_text("L0H1")
    expect(page.get_by_test_id("fidelity-table")).to_contain_text("90 of 100 queries attend most")


def test_a_map_of_an_earlier_version_keeps_its_figure_without_a_grade(
    open_map: Open, mapped: dict[str, Any]
) -> None:
    figures = mapped["told"].layout("pca").of("L0H3")[1]
    assert np.isnan(figures["map.strongest"])
    page = open_map("told", "tab=map&mapHead=L0H3")
    expect(page.get_by_test_id("fidelity")).to_contain_text("fidelity –")
    expect(page.get_by_test_id("map-hint")).to_contain_text("not measured")


@pytest.mark.full
def test_panels_carry_the_mark_and_heads_that_keep_little_are_dimmed(open_map: Open) -> None:
    page = open_map("told", "tab=map")
    expect(page.get_by_test_id("map-hint")).to_contain_text("● yes, ◐ in part, ○ little")
    figure: str = page.evaluate("attentionAtlas.svg()")
    assert all(f">{text}<" in figure for text in ("●94", "◐61", "○31"))
    before = strength(page, "L0H2")
    page.get_by_test_id("keeps-part").click()
    expect(page.get_by_test_id("keeps-count")).to_contain_text("2 of 5 heads")
    eventually(page, lambda: strength(page, "L0H2") < 0.5 * before)
    assert strength(page, "L0H1") > 0.5 * before
    settled(page)
    page.get_by_test_id("keeps-most").click()
    eventually(page, lambda: strength(page, "L0H1") < 0.5 * before)
    eventually(page, lambda: "keeps=most" in page.url)
    enter(page, "L0H2")  # a dimmed head can be opened, and is then drawn in full
    assert picks(page)["mapHead"] == "L0H2"
    assert inked(pixels(page)).any()


def strength(page: Page, head: str) -> float:
    """How far the points of a panel are from the paper at most."""
    left, top, side = panel(page, head)
    box = page.get_by_test_id("map-canvas").bounding_box()
    assert box
    x, y = int(left - box["x"]), int(top - box["y"])
    part = pixels(page)[y : y + int(side), x : x + int(side)].astype(int)
    return float(np.abs(part - np.array([252, 252, 253])).max())


def test_the_page_nowhere_claims_that_near_points_attend_to_each_other(open_map: Open) -> None:
    page = open_map("told", "tab=map")
    page.evaluate("localStorage.clear()")
    code: str = page.evaluate(
        "async () => (await (await fetch(document.querySelector('script[src]').src)).text())"
    )
    assert "near each other attend" not in code


def test_heads_are_sorted_and_filtered_by_the_figures_of_a_map(open_map: Open) -> None:
    page = open_map("told", "tab=map")
    page.get_by_test_id("tab-heads").click()
    page.get_by_test_id("sort-pca-2d.strongest").click()
    rows = page.locator("[data-testid=head-table] tbody tr")
    assert [rows.nth(at).locator("td").first.inner_text() for at in range(3)] == list(MARKS)
    page.get_by_test_id("only").select_option("pca-2d.strongest")
    page.get_by_test_id("only-value").fill("0.5")
    page.get_by_test_id("only-value").press("Enter")
    expect(rows).to_have_count(2)
    page.get_by_test_id("only-sign").select_option("<=")
    expect(page.get_by_test_id("only-count")).to_contain_text("1 of 5 heads")
    expect(rows).to_have_count(1)
    eventually(page, lambda: "only=pca-2d.strongest" in page.url)
