"""All heads, neurons and heat-map as a person uses them, and what links the views."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.web.maps import eventually

Open = Callable[..., Page]
Subjects = dict[str, Any]


def picks(page: Page) -> dict[str, Any]:
    found: dict[str, Any] = page.evaluate("attentionAtlas.picks()")
    return found


@pytest.mark.parametrize(("name", "count"), [("gpt", 36), ("bert", 36), ("seq2seq", 4)])
def test_every_head_has_a_thumbnail_with_ink_and_a_click_opens_it(
    name: str, count: int, open_page: Open
) -> None:
    page = open_page(name, "view=model")
    thumbs = page.locator("[data-testid^=thumb-]")
    expect(thumbs).to_have_count(count)
    page.wait_for_function(
        """() => {
          const canvas = document.querySelector('[data-testid=model-panel] canvas');
          const box = canvas.getBoundingClientRect(), scale = canvas.width / box.width;
          return [...document.querySelectorAll('[data-testid^=thumb-]')].map((thumb) => {
            const own = thumb.getBoundingClientRect();
            const { data } = canvas.getContext('2d').getImageData((own.left - box.left) * scale,
              (own.top - box.top) * scale, own.width * scale, own.height * scale);
            return data.some((value, at) => at % 4 === 3 && value > 0);
          }).every(inked => inked);
        }"""
    )
    thumbs.nth(count - 1).click()
    assert picks(page)["view"] == "head"
    assert thumbs.count() == 0
    expect(page.get_by_test_id("lines-0")).to_be_visible()


def test_layers_and_heads_to_show_can_be_chosen(open_page: Open) -> None:
    page = open_page("gpt", "view=model")
    page.get_by_test_id("shownLayers-0").click()
    page.get_by_test_id("shownHeads-5").click()
    expect(page.locator("[data-testid^=thumb-]")).to_have_count(25)
    assert picks(page)["shownLayers"] == [1, 2, 3, 4, 5]
    assert page.get_by_test_id("thumb-L0H0").count() == 0


def test_arrows_walk_over_heads_enter_goes_in_and_escape_out(open_page: Open) -> None:
    page = open_page("gpt", "view=model&heads=L2H2")
    for key in ("ArrowRight", "ArrowDown", "ArrowLeft", "ArrowLeft", "ArrowUp", "ArrowUp"):
        page.keyboard.press(key)
    assert picks(page)["heads"] == ["L1H1"]
    page.keyboard.press("Enter")
    assert picks(page)["view"] == "head"
    page.keyboard.press("ArrowRight")
    assert picks(page)["heads"] == ["L1H2"]
    page.keyboard.press("Escape")
    assert picks(page)["view"] == "model"


@pytest.mark.parametrize(("name", "head"), [("gpt", "L2H1"), ("bert", "L3H4")])
def test_the_neuron_view_shows_each_step_of_one_row(
    name: str, head: str, open_page: Open, subjects: Subjects
) -> None:
    page = open_page(name, f"view=neuron&heads={head}")
    page.get_by_test_id("query-0-6").click()
    expect(page.get_by_test_id("neuron-title")).to_contain_text(head)
    atlas = subjects[name]
    weights = atlas.weights(0, head)
    query, keys = atlas.queries(head, 0)[6], atlas.keys(head, 0)
    panel = page.get_by_test_id("neuron-panel").bounding_box()
    softmax = page.get_by_text("softmax", exact=True).bounding_box()
    row = page.get_by_test_id("key-0-2").bounding_box()
    assert panel and softmax and row
    page.mouse.move(softmax["x"] + 20, row["y"] + row["height"] / 2)
    tip = page.locator(".aa-tip")
    expect(tip).to_contain_text(f"softmax {weights[6, 2]:.4f}")
    expect(tip).to_contain_text(f"q·k {float(query @ keys[2]):.3f}"[:8])
    product = page.get_by_text("q × k", exact=True).first.bounding_box()
    assert product
    page.mouse.move(product["x"] + 1, row["y"] + row["height"] / 2)
    expect(tip).to_contain_text(f"neuron 0 · q {query[0]:.3f} × k {keys[2][0]:.3f}")


def test_neurons_are_sorted_by_what_they_do_for_the_row(
    open_page: Open, subjects: Subjects
) -> None:
    page = open_page("gpt", "view=neuron&heads=L2H1")
    page.get_by_test_id("query-0-6").click()
    page.get_by_test_id("sort").check()
    atlas = subjects["gpt"]
    weights, query, keys = (
        atlas.weights(0, "L2H1")[6], atlas.queries("L2H1", 0)[6], atlas.keys("L2H1", 0),
    )  # fmt: skip
    products = query * keys[:7]
    lift = weights[:7] @ products - products.mean(axis=0)
    first = ", ".join(str(neuron) for neuron in np.argsort(-lift)[:5])
    expect(page.get_by_test_id("strongest")).to_have_text(f"strongest neurons: {first}")


def test_values_stand_beside_the_softmax(open_page: Open) -> None:
    page = open_page("gpt", "view=neuron&heads=L2H1")
    expect(page.get_by_text("value v")).to_have_count(0)
    page.get_by_test_id("value-weighted").check()
    expect(page.get_by_text("value v")).to_be_visible()


@pytest.mark.full
@pytest.mark.parametrize("name", ["bare", "plain"])
def test_without_vectors_the_neuron_view_says_so_and_the_rest_lives(
    name: str, open_page: Open
) -> None:
    page = open_page(name, "view=neuron")
    expect(page.get_by_test_id("sorry")).to_contain_text("query and key vectors")
    page.get_by_test_id("view-head").click()
    expect(page.get_by_test_id("lines-0")).to_be_visible()
    page.get_by_test_id("view-model").click()
    expect(page.get_by_test_id("model-panel")).to_be_visible()


def test_the_heat_map_tells_each_weight(open_page: Open, subjects: Subjects) -> None:
    page = open_page("gpt", "view=heat&heads=L3H4")
    expect(page.get_by_test_id("lines-0")).to_be_visible()
    heat = page.get_by_label("heat-map; arrows walk its cells")
    heat.focus()
    for key in ["ArrowDown"] * 5 + ["ArrowRight"] * 2:
        page.keyboard.press(key)
    weight = subjects["gpt"].weights(0, "L3H4")[5, 2]
    expect(page.get_by_test_id("heat-tip")).to_contain_text(f"{weight:.3f}")


def test_picks_stay_the_same_in_every_view(open_page: Open) -> None:
    page = open_page("gpt", "heads=L3H4")
    page.get_by_test_id("query-0-5").click()
    start = picks(page)
    for view in ("heat", "neuron", "model", "head"):
        page.get_by_test_id(f"view-{view}").click()
        assert {**picks(page), "view": "head"} == start


def test_the_address_brings_everything_back_and_back_undoes_a_step(open_page: Open) -> None:
    page = open_page("gpt", "heads=L3H4")
    page.get_by_test_id("query-0-5").click()
    page.get_by_test_id("hide-first").click()
    eventually(page, lambda: "hidden=" in page.url)
    page.get_by_test_id("view-heat").click()
    eventually(page, lambda: "view=heat" in page.url)
    before = picks(page)
    page.reload()
    page.wait_for_selector("html[data-state=ready]")
    assert picks(page) == before
    page.go_back()
    expect(page.get_by_test_id("heat-panel")).to_have_count(0)
    assert picks(page) == {**before, "view": "head"}


def test_brackets_walk_over_inputs(open_page: Open) -> None:
    page = open_page("gpt")
    page.keyboard.press("]")
    assert picks(page)["input"] == 1
    expect(page.get_by_test_id("sentence")).to_contain_text("she was tired")
    page.keyboard.press("[")
    assert picks(page)["input"] == 0


def test_tokens_are_walked_pinned_and_hidden_by_keys_alone(open_page: Open) -> None:
    page = open_page("gpt", "heads=L2H1")
    page.get_by_test_id("query-column-0").focus()
    for _ in range(4):
        page.keyboard.press("ArrowDown")
    expect(page.get_by_test_id("query-0-3")).to_have_attribute("aria-selected", "true")
    page.keyboard.press("h")
    assert list(picks(page)["hidden"].values()) == [[3]]
    page.keyboard.press("Space")
    assert picks(page)["token"] == {"side": "query", "position": 3}


def test_a_question_mark_lists_the_keys(open_page: Open) -> None:
    page = open_page("gpt")
    page.keyboard.press("?")
    expect(page.get_by_test_id("key-list")).to_contain_text("hide or show the token")
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("key-list")).to_have_count(0)
    assert picks(page)["view"] == "head"


def test_every_control_has_a_name_and_shows_its_focus(open_page: Open) -> None:
    page = open_page("pair")
    nameless = page.evaluate(
        """() => [...document.querySelectorAll('button, select, input, [tabindex="0"]')]
          .filter(one => !(one.ariaLabel || one.innerText.trim() || one.labels?.length))
          .map(one => one.outerHTML)"""
    )
    assert nameless == []
    page.keyboard.press("Tab")
    style = "getComputedStyle(document.activeElement).outlineStyle"
    assert page.evaluate(style) == "solid"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark_follow_the_system_and_the_switch(
    scheme: Any, browser: Browser, page_url: Callable[..., str]
) -> None:
    page = browser.new_page(color_scheme=scheme)
    page.goto(page_url("gpt"))
    page.wait_for_selector(f"html[data-state=ready][data-theme={scheme}]")
    page.get_by_test_id("theme").click()
    page.wait_for_selector("html[data-theme=light]")
    page.get_by_test_id("theme").click()
    page.wait_for_selector("html[data-theme=dark]")
    page.close()


def test_below_a_thousand_pixels_panels_are_drawers(open_page: Open) -> None:
    page = open_page("gpt")
    expect(page.get_by_test_id("inspector")).to_be_visible()
    page.set_viewport_size({"width": 900, "height": 700})
    expect(page.get_by_test_id("inspector")).to_have_count(0)
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 900
    page.get_by_test_id("toggle-controls").click()
    expect(page.get_by_test_id("threshold")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("threshold")).to_have_count(0)


def test_hints_come_once(open_page: Open) -> None:
    page = open_page("gpt")
    expect(page.get_by_test_id("hints")).to_be_visible()
    page.keyboard.press("x")
    expect(page.get_by_test_id("hints")).to_have_count(0)
    page.reload()
    page.wait_for_selector("html[data-state=ready]")
    expect(page.get_by_test_id("hints")).to_have_count(0)
