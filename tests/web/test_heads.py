"""The Heads tab: sorting, filtering, picture, scatter → card → head view."""

from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Page, expect

from attention_atlas.measure.run import measure_atlas
from tests.tolerance import unit
from tests.web.maps import eventually

Open = Callable[..., Page]


def first_heads(page: Page, count: int = 3) -> list[str]:
    rows = page.locator("[data-testid=head-table] tbody tr")
    return [rows.nth(i).locator("td").first.inner_text() for i in range(count)]


def test_the_table_sorts_by_a_score_and_turns_round(open_page: Open) -> None:
    page = open_page("gpt", "tab=heads")
    assert first_heads(page) == ["L0H0", "L0H1", "L0H2"]
    page.get_by_test_id("sort-previous").click()
    assert first_heads(page, 1) == ["L3H2"]
    expect(page.locator("th[aria-sort=descending]")).to_have_text("one back ↓")
    page.get_by_test_id("sort-previous").click()
    assert first_heads(page, 1) != ["L3H2"]


def test_kinds_filter_table_scatter_and_picture(open_page: Open) -> None:
    page = open_page("gpt", "tab=heads")
    rows = page.locator("[data-testid=head-table] tbody tr")
    assert rows.count() == 36
    page.get_by_test_id("kind-parallel").check()
    expect(page.get_by_test_id("row-L3H2")).to_be_visible()
    kept = rows.count()
    assert 0 < kept < 36
    assert page.locator("[data-testid=scatter] circle").count() == kept
    assert page.locator(".aa-picture rect[opacity='0.15']").count() == 36 - kept


def test_any_score_colours_the_picture_and_says_its_formula(open_page: Open) -> None:
    page = open_page("gpt", "tab=heads")
    before = page.get_by_test_id("cell-L3H2").get_attribute("fill")
    assert before == "#2b7bba"  # parallel
    page.get_by_test_id("score").select_option("entropy")
    expect(page.get_by_test_id("formula")).to_contain_text("log n")
    assert page.get_by_test_id("cell-L3H2").get_attribute("fill") != before


def test_from_the_scatter_to_the_card_to_the_lines_of_the_head(open_page: Open) -> None:
    page = open_page("gpt", "tab=heads&across=previous&up=confidence")
    page.get_by_test_id("dot-L3H2").click()
    expect(page.get_by_test_id("card").locator("h2")).to_have_text("L3H2")
    expect(page.get_by_test_id("card-kind")).to_have_text("parallel")
    expect(page.get_by_test_id("card")).to_contain_text("1 before")
    page.locator("[data-testid^=telling-]").first.click()
    eventually(page, lambda: "tab=heads" not in page.url)
    picks = page.evaluate("attentionAtlas.picks()")
    assert picks["heads"] == ["L3H2"] and picks["view"] == "head"
    page.go_back()
    expect(page.get_by_test_id("head-table")).to_be_visible()


def test_heads_alike_lie_on_a_map_and_lead_to_each_other(open_page: Open) -> None:
    page = open_page("gpt", "tab=heads&heads=L3H2")
    page.get_by_test_id("across").select_option("alike")
    expect(page.locator("[data-testid=scatter] circle")).to_have_count(36)
    near = page.locator("[data-testid^=near-]").first
    name = near.inner_text()
    near.click()
    expect(page.get_by_test_id("card").locator("h2")).to_have_text(name)


def test_a_model_of_several_towers_shows_all_of_them(open_page: Open) -> None:
    page = open_page("seq2seq", "tab=heads")
    expect(page.locator(".aa-picture rect")).to_have_count(16)
    page.get_by_test_id("cell-cross.L1H1").click()
    expect(page.get_by_test_id("card").locator("h2")).to_have_text("cross.L1H1")


def test_plain_attention_has_no_heads_tab(open_page: Open) -> None:
    page = open_page("plain")
    expect(page.get_by_test_id("tab-heads")).to_have_count(0)


def test_the_distribution_counts_every_head_and_marks_the_picked_one(
    open_page: Open, subjects: dict[str, Any]
) -> None:
    page = open_page("gpt", "tab=heads&score=previous&heads=L3H2")
    table = subjects["gpt"].measure(progress=False).table
    values = table[table["measure"] == "previous"].set_index("head")["value"]
    box = page.get_by_test_id("distribution")
    counts = [int(one.get_attribute("data-count") or 0) for one in box.locator("rect").all()]
    assert sum(counts) == 36 and box.locator("[data-testid^=strip-]").count() == 36
    marked = float(page.get_by_test_id("distribution-mark").get_attribute("data-value") or 0)
    assert marked == pytest.approx(values["L3H2"], rel=unit())
    quarters = " · ".join(f"{values.quantile(share):.3f}" for share in (0, 0.25, 0.5, 0.75, 1))
    expect(page.get_by_test_id("distribution-told")).to_contain_text(
        f"36 heads: mean {values.mean():.3f}, deviation {values.std(ddof=0):.3f}; {quarters}"
    )
    page.get_by_test_id("strip-L0H0").dispatch_event("click")  # dots may touch
    expect(page.get_by_test_id("card").locator("h2")).to_have_text("L0H0")
    page.get_by_test_id("kind-parallel").check()
    kept = page.locator("[data-testid=head-table] tbody tr").count()
    expect(page.get_by_test_id("distribution-told")).to_contain_text(f"{kept} heads")


def test_the_tab_is_exported_as_a_figure_that_stands_alone(open_page: Open) -> None:
    page = open_page("gpt", "tab=heads&score=entropy&heads=L3H2")
    figure = ElementTree.fromstring(page.evaluate("attentionAtlas.svg()"))
    marks = {
        name: list(figure.iter(f"{{http://www.w3.org/2000/svg}}{name}"))
        for name in ("rect", "circle", "text")
    }
    shade = page.get_by_test_id("cell-L3H2").evaluate("cell => getComputedStyle(cell).fill")
    assert sum(one.get("fill") == shade for one in marks["rect"]) >= 1
    assert len(marks["circle"]) == 36 + 36 + 1  # scatter, strip, and the ring around the picked one
    assert not [one for one in figure.iter() if "var(" in str(one.attrib)]
    words = " ".join("".join(one.itertext()) for one in marks["text"])
    assert "36 heads: mean" in words and "entropy" in words


def test_on_the_card_no_interval_wraps_and_no_rank_is_cut_off(open_page: Open) -> None:
    page = open_page("gpt", "tab=heads&heads=L3H2")
    page.set_viewport_size({"width": 1440, "height": 900})
    side = page.get_by_test_id("inspector").bounding_box()
    rows = page.locator("[data-testid=card] .aa-scores tbody tr").all()
    assert side is not None and len(rows) == 19
    for row in rows:
        rank = row.locator("td").last.bounding_box()
        assert rank is not None and rank["x"] + rank["width"] <= side["x"] + side["width"] - 10
        lines = (
            row.locator("td")
            .nth(2)
            .evaluate(
                "cell => { const range = document.createRange(); range.selectNodeContents(cell);"
                " return new Set([...range.getClientRects()].map((one) => one.top)).size }"
            )
        )
        assert lines <= 1


def test_scores_without_sinks_by_the_same_switch_in_table_and_card(
    open_page: Open, subjects: dict[str, Any]
) -> None:
    atlas = subjects["gpt"]
    expected = measure_atlas(atlas, progress=False, keep=False, without_sinks=True).table
    page = open_page("gpt", "tab=heads&heads=L5H4")
    headings = page.locator("[data-testid=head-table] th").all_inner_texts()
    cell = page.get_by_test_id("row-L5H4").locator("td").nth(headings.index("confidence"))
    with_sinks = float(cell.inner_text())
    page.get_by_test_id("no-sinks").check()
    expect(page.get_by_test_id("card-no-sinks")).to_be_visible()
    mine = expected[(expected["head"] == "L5H4") & (expected["measure"] == "confidence")]
    eventually(page, lambda: abs(float(cell.inner_text()) - float(mine["value"].iloc[0])) < 0.006)
    assert abs(with_sinks - float(mine["value"].iloc[0])) > 0.05
    assert "on first token" not in page.locator("[data-testid=card] .aa-scores").inner_text()
    page.get_by_test_id("no-sinks").uncheck()
    eventually(page, lambda: float(cell.inner_text()) == with_sinks)
