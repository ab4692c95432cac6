"""The head view as a person uses it: squares, tokens, filters, sliders, words, two inputs."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from tests.tolerance import reading_tolerance
from tests.web.maps import eventually

Open = Callable[..., Page]
Subjects = dict[str, Any]

# Ink of a canvas beside a token: the strongest alpha in the first pixels of its row's lines.
INK = """([canvas, token, side]) => {
  const box = canvas.getBoundingClientRect(), own = token.getBoundingClientRect();
  const scale = canvas.width / box.width;
  const x = side === 'query' ? own.right + 2 : own.left - 6;
  const take = (v) => Math.round(v * scale);
  const { data } = canvas.getContext('2d').getImageData(
    take(x - box.left), take(own.top - box.top + 2), take(4), take(own.height - 4));
  return Math.max(...data.filter((_, at) => at % 4 === 3));
}"""


def ink(page: Page, token: str, layer: int, side: str) -> int:
    """layer 0: all lines; layer 1: those of the active token."""
    canvas = page.locator("[data-testid=lines-0] canvas").nth(layer).element_handle()
    found = page.get_by_test_id(token).element_handle()
    return int(page.evaluate(INK, [canvas, found, side]))


def told(page: Page, side: str = "key", pane: int = 0) -> dict[int, float]:
    """The numbers that stand beside tokens."""
    script = f"""() => Object.fromEntries(
      [...document.querySelectorAll('[data-testid^="{side}-{pane}-"][data-weight]')]
      .map(one => [one.dataset.testid.split('-')[2], Number(one.dataset.weight)]))"""
    return {int(at): weight for at, weight in page.evaluate(script).items()}


def drawn(page: Page) -> float:
    text = page.get_by_test_id("drawn").inner_text()
    return float(text.split(":")[1].split("%")[0]) / 100


def slide(page: Page, name: str, value: float) -> None:
    slider = page.get_by_test_id(name)
    slider.evaluate(
        "(one, to) => { one.value = to; one.dispatchEvent(new Event('input', {bubbles: true})) }",
        value,
    )


def pressed(page: Page) -> list[bool]:
    squares = page.locator("[data-testid^=head-][aria-pressed]")
    return [one == "true" for one in squares.evaluate_all("all => all.map(a => a.ariaPressed)")]


def test_a_click_toggles_a_head_and_a_double_click_shows_it_alone_and_back(open_page: Open) -> None:
    page = open_page("gpt")
    assert pressed(page) == [True] * 6
    page.get_by_test_id("head-2").click()
    assert pressed(page) == [True, True, False, True, True, True]
    page.get_by_test_id("head-4").dblclick()
    assert pressed(page) == [False, False, False, False, True, False]
    page.get_by_test_id("head-4").dblclick()
    assert pressed(page) == [True, True, False, True, True, True]


def test_the_last_head_cannot_be_left_out(open_page: Open) -> None:
    page = open_page("gpt", "heads=L1H3")
    page.get_by_test_id("head-3").click()
    assert pressed(page) == [False, False, False, True, False, False]


@pytest.mark.parametrize(("name", "head"), [("gpt", "L2H1"), ("bert", "L3H4"), ("plain", "L2H1")])
def test_a_token_under_the_cursor_shows_its_lines_and_numbers_alone(
    name: str, head: str, open_page: Open, subjects: Subjects
) -> None:
    page = open_page(name, f"heads={head}")
    atlas = subjects["gpt" if name == "plain" else name]
    weights, off = atlas.weights(0, head), reading_tolerance(atlas, 0, head)
    assert ink(page, "query-0-5", 0, "query") > 0
    page.get_by_test_id("query-0-5").hover()
    assert ink(page, "query-0-5", 1, "query") > 0
    assert ink(page, "query-0-4", 1, "query") == 0
    expect(page.locator("[data-testid=lines-0] canvas").first).to_have_class("aa-dim")
    for at, weight in told(page).items():
        assert weight == pytest.approx(weights[5, at], abs=off)
    page.get_by_test_id("key-0-3").hover()
    assert ink(page, "key-0-3", 1, "key") > 0
    for at, weight in told(page, "query").items():
        assert weight == pytest.approx(weights[at, 3], abs=off)
    page.mouse.move(5, 5)
    assert told(page) == {}


def test_a_click_pins_a_token_and_escape_lets_go(open_page: Open) -> None:
    page = open_page("gpt", "heads=L2H1")
    page.get_by_test_id("query-0-6").click()
    page.mouse.move(5, 5)
    assert told(page)
    expect(page.get_by_test_id("status")).to_contain_text("pinned")
    assert page.evaluate("attentionAtlas.picks().token") == {"side": "query", "position": 6}
    page.keyboard.press("Escape")
    assert told(page) == {}
    page.get_by_test_id("key-0-2").click()
    page.get_by_test_id("key-0-2").click()
    assert page.evaluate("attentionAtlas.picks().pinned") is False


def test_a_line_under_the_cursor_says_its_number(open_page: Open, subjects: Subjects) -> None:
    page = open_page("gpt", "heads=L4H1")
    weights = subjects["gpt"].weights(0, "L4H1")
    row, column = divmod(int(np.argmax(weights[3:])), weights.shape[1])
    row += 3
    here = page.get_by_test_id(f"query-0-{row}").bounding_box()
    there = page.get_by_test_id(f"key-0-{column}").bounding_box()
    assert here and there
    x0, x1 = here["x"] + here["width"], there["x"]
    y0, y1 = here["y"] + here["height"] / 2, there["y"] + there["height"] / 2
    page.mouse.move(x0 + (x1 - x0) * 0.37, y0 + (y1 - y0) * 0.37)
    tip = page.locator(".aa-tip")
    expect(tip).to_contain_text("L4H1")
    assert float(tip.locator(".aa-number").inner_text()) > 0.01


@pytest.mark.full
@pytest.mark.parametrize("filter", ["aa", "ab", "ba", "bb"])
def test_sentences_of_a_pair_are_filtered(filter: str, open_page: Open, subjects: Subjects) -> None:
    page = open_page("pair", "heads=L2H3")
    page.get_by_test_id(f"filter-{filter}").click()
    weights = subjects["bert"].weights(1, "L2H3")
    segment = subjects["bert"].tokens(1)["segment"]
    rows = np.array(segment) == "ab".index(filter[0])
    columns = np.array(segment) == "ab".index(filter[1])
    assert rows.any() and columns.any()
    expected = weights[rows][:, columns].sum() / weights[rows].sum()
    assert drawn(page) == pytest.approx(expected, abs=0.006)


def test_one_sentence_has_no_sentence_filter(open_page: Open) -> None:
    assert open_page("gpt").get_by_test_id("filter-ab").count() == 0


def test_the_towers_of_an_encoder_decoder_are_switched(open_page: Open, subjects: Subjects) -> None:
    page = open_page("seq2seq")
    for tower, layers in (("encoder", 2), ("decoder", 3), ("cross", 3)):
        page.get_by_test_id(f"tower-{tower}").click()
        expect(page.get_by_test_id("layer").locator("option")).to_have_count(layers)
        expect(page.get_by_test_id("lines-0")).to_be_visible()
    page.get_by_test_id("head-1").dblclick()
    page.get_by_test_id("query-0-2").hover()
    head = page.evaluate("attentionAtlas.picks().heads")[0]
    assert head == "cross.L0H1"
    weights = subjects["seq2seq"].weights(0, head)
    off = reading_tolerance(subjects["seq2seq"], 0, head)
    assert told(page)
    for at, weight in told(page).items():
        assert weight == pytest.approx(weights[2, at], abs=off)


def test_threshold_and_top_k_say_how_much_is_drawn(open_page: Open, subjects: Subjects) -> None:
    page = open_page("bert", "heads=L1H2")
    weights = subjects["bert"].weights(0, "L1H2")
    assert drawn(page) == 1
    slide(page, "threshold", 30)
    least = page.evaluate("attentionAtlas.picks().threshold")
    assert drawn(page) == pytest.approx(weights[weights >= least].sum() / weights.sum(), abs=0.006)
    slide(page, "threshold", 0)
    slide(page, "topk", 2)
    strongest = np.sort(weights, axis=1)[:, -2:].sum()
    assert drawn(page) == pytest.approx(strongest / weights.sum(), abs=0.006)


def test_undo_and_redo_walk_through_filters_and_hidden_tokens(open_page: Open) -> None:
    page = open_page("gpt", "heads=L2H1")
    page.get_by_test_id("hide-first").click()
    page.get_by_test_id("hide-punctuation").click()
    after = page.evaluate("attentionAtlas.picks().hidden")
    page.get_by_test_id("undo").click()
    page.keyboard.press("Control+z")
    assert page.evaluate("attentionAtlas.picks().hidden") == {}
    page.get_by_test_id("redo").click()
    page.get_by_test_id("redo").click()
    assert page.evaluate("attentionAtlas.picks().hidden") == after
    page.get_by_test_id("show-all").click()
    assert page.evaluate("attentionAtlas.picks().hidden") == {}


def test_a_token_is_hidden_with_alt_and_shown_again_by_its_chip(open_page: Open) -> None:
    page = open_page("gpt", "heads=L2H1")
    page.get_by_test_id("key-0-4").click(modifiers=["Alt"])
    expect(page.get_by_test_id("query-0-4")).to_have_class("aa-token aa-hidden")
    page.locator("[data-testid^=show-][data-testid$='-4']").click()
    expect(page.get_by_test_id("query-0-4")).to_have_class("aa-token")


def test_pieces_merge_to_words(open_page: Open, subjects: Subjects) -> None:
    page = open_page("bert", "heads=L2H1")
    pieces = page.locator("[data-testid^=query-0-]").count()
    page.get_by_test_id("words").check()
    words = page.locator("[data-testid^=query-0-]").count()
    assert words <= pieces
    titles = page.locator("[data-testid^=query-0-]").evaluate_all("all => all.map(a => a.title)")
    groups = [[int(at) for at in title.removeprefix("token ").split(", ")] for title in titles]
    weights = subjects["bert"].weights(0, "L2H1")
    page.get_by_test_id("query-0-3").hover()
    looking = weights[groups[3]].mean(axis=0)
    off = reading_tolerance(subjects["bert"], 0, "L2H1")
    for at, weight in told(page).items():
        word = groups[at]
        assert weight == pytest.approx(looking[word].sum(), abs=len(word) * off)


def test_two_inputs_stand_side_by_side_with_their_difference(
    open_page: Open, subjects: Subjects
) -> None:
    page = open_page("gpt", "heads=L3H4")
    page.get_by_test_id("other").select_option(index=1)
    expect(page.get_by_test_id("lines-2")).to_be_visible()
    first, second = (subjects["gpt"].weights(i, "L3H4") for i in (0, 1))
    row = len(first) - 1
    page.get_by_test_id(f"query-0-{row}").hover()
    assert first.shape == second.shape
    found = told(page, "key", 2)
    off = sum(reading_tolerance(subjects["gpt"], i, "L3H4") for i in (0, 1))
    assert found
    for at, weight in found.items():
        assert weight == pytest.approx((second - first)[row, at], abs=off)


def test_lines_can_be_weighed_by_what_is_moved(open_page: Open, subjects: Subjects) -> None:
    page = open_page("gpt", "heads=L3H4")
    page.get_by_test_id("value-weighted").check()
    atlas = subjects["gpt"]
    moved = atlas.weights(0, "L3H4") * np.linalg.norm(atlas.values("L3H4", 0), axis=1)
    expected = moved / moved.sum(axis=1, keepdims=True)
    page.get_by_test_id("query-0-7").hover()

    def right() -> bool:
        said = told(page)
        return said == pytest.approx({at: expected[7, at] for at in said}, abs=1e-5) and bool(said)

    eventually(page, right)
