"""Sets of tokens, picked as a person picks them, against NumPy's sums and means of the weights."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, expect

import attention_atlas as aa
from tests.tolerance import reading_tolerance
from tests.web.test_page_lines import ink, told

pytestmark = pytest.mark.full

Open = Callable[..., Page]
Subjects = dict[str, Any]
TOGETHER: dict[str, Any] = {"mean": np.mean, "sum": np.sum}


def _beside(page: Page, expected: Any, side: str, off: float) -> None:
    """The numbers beside tokens are those of `expected`, and none of the strong ones is missing."""
    shown = told(page, side)
    assert len(shown) >= min(10, int((expected > 0.01).sum()))
    for at, weight in shown.items():
        assert weight == pytest.approx(expected[at], abs=off)


def _card(page: Page, name: str) -> dict[int, float]:
    """The rows of a table of the card: place → number."""
    rows = page.locator(f"[data-testid={name}s] tr[data-testid]")
    script = """all => all.map(one => [Number(one.dataset.testid.split('-').pop()),
                                      Number(one.querySelector('.aa-number').innerText)])"""
    return dict(rows.evaluate_all(script))


def test_clicks_with_ctrl_and_shift_pick_a_set_whose_mean_and_sum_are_shown_both_ways(
    open_page: Open, subjects: Subjects
) -> None:
    weights = subjects["bert"].weights(0, "L3H4").astype(float)
    off = 4 * reading_tolerance(subjects["bert"], 0, "L3H4")
    page = open_page("bert", "heads=L3H4")
    page.get_by_test_id("query-0-2").click()
    page.get_by_test_id("query-0-5").click(modifiers=["ControlOrMeta"])
    page.get_by_test_id("query-0-7").click(modifiers=["ControlOrMeta"])
    _beside(page, weights[[2, 5, 7]].mean(0), "key", off)
    assert ink(page, "query-0-5", 1, "query") > 0
    assert ink(page, "query-0-4", 1, "query") == 0
    back = weights[:, [2, 5, 7]]
    for at, number in _card(page, "back").items():
        assert number == pytest.approx(back.mean(1)[at], abs=off + 5e-4)
    page.keyboard.press("b")
    _beside(page, weights[[2, 5, 7]].sum(0), "key", off)
    for at, number in _card(page, "partner").items():
        assert number == pytest.approx(weights[[2, 5, 7]].sum(0)[at], abs=off + 5e-4)
    page.get_by_test_id("query-0-9").click(modifiers=["Shift"])
    _beside(page, weights[2:10].sum(0), "key", off)
    assert "chosen=" in page.evaluate(
        "async () => (await new Promise(r => setTimeout(r, 200)), location.hash)"
    )
    page.keyboard.press("u")
    _beside(page, weights[[2, 5, 7]].sum(0), "key", off)
    page.keyboard.press("Escape")
    assert page.evaluate("attentionAtlas.picks().chosen") is None


def test_a_set_of_looked_at_tokens_is_a_link_and_the_keyboard_makes_one_too(
    open_page: Open, subjects: Subjects
) -> None:
    weights = subjects["gpt"].weights(0, "L2H1").astype(float)
    off = 4 * reading_tolerance(subjects["gpt"], 0, "L2H1")
    page = open_page("gpt", "heads=L2H1&chosen={'side':'key','positions':[0,3]}&together=sum")
    _beside(page, weights[:, [0, 3]].sum(1), "query", off)
    page.keyboard.press("Escape")
    page.get_by_test_id("key-column-0").focus()
    for key in ("Home", "ArrowDown", "Control+ ", "Control+ArrowDown", "Control+ArrowDown"):
        page.keyboard.press(key)
    page.keyboard.press("Control+ ")
    assert page.evaluate("attentionAtlas.picks().chosen") == {"side": "key", "positions": [1, 3]}
    page.keyboard.press("Shift+ArrowDown")
    assert page.evaluate("attentionAtlas.picks().chosen.positions") == [1, 2, 3, 4]
    _beside(page, weights[:, 1:5].sum(1), "query", off)


@pytest.mark.parametrize("how", ["mean", "sum"])
def test_the_other_close_ups_show_the_same_set(
    how: str, open_page: Open, subjects: Subjects
) -> None:
    atlas: aa.Atlas = subjects["bert"]
    weights = atlas.weights(0, "L3H4").astype(float)
    expected = TOGETHER[how](weights[[2, 5]], axis=0)
    off = 4 * reading_tolerance(atlas, 0, "L3H4")
    picked = f"heads=L3H4&chosen={{'side':'query','positions':[2,5]}}&together={how}"
    page = open_page("bert", f"{picked}&view=heat")
    strip = json.loads(page.get_by_test_id("heat-set").get_attribute("data-weights") or "")
    np.testing.assert_allclose(strip, expected, rtol=0, atol=off + 1e-6)

    page.keyboard.press("6")
    words = page.locator("[data-testid^=read-text-]")
    script = "all => all.map(one => Number(one.dataset.weight))"
    np.testing.assert_allclose(words.evaluate_all(script), expected, rtol=0, atol=off)
    page.get_by_test_id("read-key").click()
    looked_at = TOGETHER[how](weights[:, [2, 5]], axis=1)
    np.testing.assert_allclose(words.evaluate_all(script), looked_at, rtol=0, atol=off)
    page.get_by_test_id("read-query").click()

    page.keyboard.press("3")
    expect(page.get_by_test_id("neuron-title")).to_contain_text(f"2 tokens look, {how}")
    strongest = int(expected.argmax())
    x, y = page.evaluate(
        """at => { const row = document.querySelector(`[data-testid=key-0-${at}]`)
              .getBoundingClientRect(); return [row.left - 40, row.top + row.height / 2]; }""",
        strongest,
    )
    page.mouse.move(x, y)
    expect(page.locator(".aa-tip")).to_contain_text(f"softmax {expected[strongest]:.3f}")
    page.keyboard.press("2")
    expect(page.get_by_test_id("model-set")).to_contain_text("2 picked tokens")


def test_the_sentence_beside_the_map_shows_the_set(
    open_map: Open, mapped: dict[str, aa.Atlas]
) -> None:
    atlas = mapped["gpt-map"]
    weights, off = atlas.weights(0, "L1H2").astype(float), reading_tolerance(atlas, 0, "L1H2")
    page = open_map(
        "gpt-map", "tab=map&mapHead=L1H2&token={'side':'query','position':3}&pinned=true"
    )
    page.get_by_test_id("query-0-6").click(modifiers=["ControlOrMeta"])
    _beside(page, weights[[3, 6]].mean(0), "key", 4 * off)


def test_steps_go_through_the_text_token_by_token(open_page: Open, subjects: Subjects) -> None:
    weights = subjects["gpt"].weights(0, "L2H1").astype(float)
    off = 4 * reading_tolerance(subjects["gpt"], 0, "L2H1")
    page = open_page("gpt", "heads=L2H1&view=read")
    script = "all => all.map(one => Number(one.dataset.weight))"
    words = page.locator("[data-testid^=read-text-]")
    np.testing.assert_allclose(words.evaluate_all(script), weights.mean(0), rtol=0, atol=off)
    for row in range(3):
        page.keyboard.press(".")
        np.testing.assert_allclose(words.evaluate_all(script), weights[row], rtol=0, atol=off)
    page.keyboard.press(",")
    np.testing.assert_allclose(words.evaluate_all(script), weights[1], rtol=0, atol=off)
    assert "aa-later" in (words.nth(2).get_attribute("class") or "")


def test_generated_text_is_stepped_through_from_its_first_token(
    page: Page, tmp_path: Any, built: None
) -> None:
    atlas = aa.capture("builtin:gpt", "The cat sat on", generate=5, progress=False)
    first = int(atlas.inputs()["prompt"][0])  # tokens that were given
    page.goto(aa.text_view(atlas, heads=["L1H0"]).save(tmp_path / "text.html").as_uri())
    page.wait_for_selector("html[data-state=ready]")
    page.keyboard.press(".")
    assert page.evaluate("attentionAtlas.picks().token") == {"side": "query", "position": first}
    page.keyboard.press(".")
    assert page.evaluate("attentionAtlas.picks().token.position") == first + 1
