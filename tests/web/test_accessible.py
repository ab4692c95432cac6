"""Can everybody use the page? axe in a real Chromium, words for every canvas, and keys alone."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

import attention_atlas as aa
from attention_atlas.page.hosts.launch import start
from attention_atlas.page.live.model import LiveModel
from tests.web import pictures
from tests.web.axe import violations
from tests.web.conftest import PATIENCE
from tests.web.maps import eventually, painted, picks

Open = Callable[..., Page]
THEMES = ["light", "dark"]
TOKEN = "token={'side':'query','position':3}&pinned=true"
EDIT = "edits=[{'edit':{'edit':'ablate','heads':['L4H5'],'by':'zero'},'on':true}]"


@pytest.fixture(scope="module")
def live(built: None, mapped: dict[str, aa.Atlas]) -> Iterator[str]:
    """The address of a mapped atlas with its model, and of another to compare it with."""
    atlases = [mapped["gpt-map"], mapped["bert-map"]]
    with start(atlases, port=0, models=[LiveModel("builtin:gpt"), None]) as running:
        yield running.url


@pytest.fixture
def visit(page: Page, live: str) -> Open:
    def go(hash: str = "", theme: Any = "light") -> Page:
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        page.goto("about:blank")
        page.goto(f"{live}#{hash}")
        page.wait_for_selector("html[data-state=ready]", timeout=PATIENCE)
        return page

    return go


VIEWS = [
    "tab=map",
    f"tab=map&mapHead=L4H5&{TOKEN}",
    f"tab=map&mapHead=L4H5&trueNear=true&search=the&{TOKEN}",
    "tab=text&view=head",
    f"tab=text&view=head&heads=L3H1&other=2&{TOKEN}",
    "tab=text&view=model",
    f"tab=text&view=neuron&heads=L3H1&{TOKEN}",
    f"tab=text&view=heat&heads=L3H1&{TOKEN}",
    "tab=text&view=logit",
    f"tab=text&view=read&{TOKEN}",
    "tab=heads&heads=L3H1",
    "tab=heads&score=entropy&across=entropy&up=distance",
]


@pytest.mark.full
def test_axe_finds_nothing_on_lines_in_light_and_dark(visit: Open) -> None:
    page = visit("tab=text&view=head&heads=L3H1")
    assert violations(page) == []
    page.emulate_media(color_scheme="dark")
    expect(page.locator("html[data-theme=dark]")).to_have_count(1)
    assert violations(page) == []


@pytest.mark.full
@pytest.mark.parametrize("theme", THEMES)
def test_axe_finds_nothing_on_any_tab_and_view(visit: Open, theme: str) -> None:
    wrong = {}
    for view in VIEWS:
        page = visit(view, theme)
        if "tab=heads" in view:
            expect(page.get_by_test_id("card")).to_be_visible(timeout=PATIENCE)
        if found := violations(page):
            wrong[view] = found
    assert wrong == {}


@pytest.mark.full
@pytest.mark.parametrize("theme", THEMES)
def test_axe_finds_nothing_in_the_comparison_and_in_the_lab(visit: Open, theme: str) -> None:
    page = visit("tab=heads&versus=[0]", theme)
    expect(page.get_by_test_id("reaction-0")).to_be_visible(timeout=PATIENCE)
    assert violations(page) == []
    page = visit(f"tab=lab&{EDIT}", theme)
    expect(page.get_by_test_id("verdict")).to_be_visible(timeout=PATIENCE)
    assert violations(page) == []


@pytest.mark.full
@pytest.mark.parametrize("theme", THEMES)
def test_axe_finds_nothing_in_menus_dialogs_and_drawers(visit: Open, theme: str) -> None:
    page = visit("tab=text&view=head&heads=L3H1", theme)
    page.keyboard.press("?")
    expect(page.get_by_test_id("key-list")).to_be_visible()
    assert violations(page) == []
    page.keyboard.press("Escape")
    page.keyboard.press("Control+k")
    page.keyboard.type("map")
    expect(page.get_by_test_id("palette-list")).to_contain_text("UMAP")
    assert violations(page) == []
    page.keyboard.press("Escape")
    page.get_by_test_id("export").click()
    assert violations(page) == []
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("export-svg")).to_have_count(0)
    page.keyboard.press("e")
    expect(page.get_by_test_id("edit-menu")).to_be_visible(timeout=PATIENCE)
    assert violations(page) == []
    page.keyboard.press("Escape")
    page.set_viewport_size({"width": 900, "height": 700})
    for drawer in ("toggle-controls", "toggle-inspector"):
        page.get_by_test_id(drawer).click()
        assert violations(page) == []


@pytest.mark.full
@pytest.mark.parametrize("theme", THEMES)
def test_axe_finds_nothing_on_a_picture(page: Page, theme: Any) -> None:
    page.emulate_media(color_scheme=theme)
    pictures.serve(page, pictures.Scene([(640, 480)], [(0, 7, 7, pictures.WHOLE)]))
    page.goto(f"{pictures.HOME}#tab=image&token={{'side':'query','position':9}}&pinned=true")
    page.wait_for_selector("html[data-state=ready]", timeout=PATIENCE)
    assert violations(page) == []
    # Head 0 of the planted scene looks at the next patch with 0.9; position 9 is row 1, column 1.
    picture = page.get_by_test_id("image-canvas")
    expect(picture).to_have_attribute("role", "img")
    eventually(page, lambda: "row 1, column 1" in (picture.get_attribute("aria-label") or ""))
    assert "looks most at row 1, column 2, 0.9" in (picture.get_attribute("aria-label") or "")


@pytest.mark.full
def test_lines_and_heat_map_are_said_in_words(visit: Open, mapped: dict[str, aa.Atlas]) -> None:
    """The number of tokens and the largest weight, from what is stored."""
    weights = mapped["gpt-map"].layer_weights(0, 3)[1]
    page = visit("tab=text&view=heat&heads=L3H1")
    for canvas in (page.locator(".aa-bip canvas").first, page.get_by_test_id("heat-canvas")):
        expect(canvas).to_have_attribute("role", "img")
        expect(canvas).to_have_attribute("aria-label", re.compile("at “"), timeout=PATIENCE)
        said = canvas.get_attribute("aria-label") or ""
        assert f"{len(weights)} " in said
        assert f"{weights.max():.3f}" in said


@pytest.mark.full
def test_changes_are_announced(visit: Open) -> None:
    page = visit("tab=text&view=head&heads=L3H1")
    said = page.get_by_test_id("announcer")
    expect(said).to_have_attribute("aria-live", "polite")
    page.keyboard.press("ArrowRight")
    expect(said).to_contain_text("Text: L3H2", timeout=PATIENCE)


@pytest.mark.full
def test_a_group_is_one_stop_and_arrows_walk_it(visit: Open) -> None:
    page = visit("tab=heads&heads=L3H1")
    expect(page.get_by_test_id("head-table")).to_be_visible(timeout=PATIENCE)
    for group in ("layers × heads", "scatter plot", "distribution"):
        stops = page.get_by_role("group", name=group).locator("[tabindex='0']")
        expect(stops).to_have_count(1)
    page.get_by_test_id("cell-L3H1").focus()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_test_id("cell-L4H1")).to_be_focused()
    assert picks(page)["heads"] == ["L4H1"]
    scatter = page.get_by_test_id("scatter")
    scatter.locator("[tabindex='0']").focus()
    before = page.evaluate("document.activeElement.dataset.stop")
    for key in ("ArrowRight", "ArrowLeft", "ArrowUp", "ArrowDown"):
        page.keyboard.press(key)
    page.keyboard.press("Space")
    after = page.evaluate("document.activeElement.dataset.stop")
    assert after and before and picks(page)["heads"] == [after]


@pytest.mark.full
def test_a_choice_is_walked_by_arrows_and_the_head_stays(visit: Open) -> None:
    page = visit("tab=map&mapHead=L3H1")
    page.get_by_test_id("dims-2").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_test_id("dims-3")).to_be_focused()
    expect(page.get_by_test_id("dims-3")).to_have_attribute("aria-checked", "true")
    assert picks(page)["heads"] == ["L3H1"]


@pytest.mark.full
def test_points_of_the_map_are_walked_by_keys(visit: Open) -> None:
    page = visit("tab=map&mapHead=L3H1")
    painted(page)
    page.keyboard.press(".")
    page.keyboard.press(".")
    eventually(page, lambda: picks(page)["token"] == {"side": "query", "position": 1})
    page.keyboard.press(",")
    eventually(page, lambda: picks(page)["token"] == {"side": "query", "position": 0})
    expect(page.get_by_test_id("sentence-view")).to_be_visible()


@pytest.mark.full
@pytest.mark.parametrize(
    "hash", ["tab=map", "tab=text&view=head&heads=L3H1", "tab=heads", "tab=lab"]
)
def test_tab_reaches_every_control(visit: Open, hash: str) -> None:
    """Every button, field and group on screen is a stop of Tab, or inside a group that has one."""
    page = visit(hash)
    if "heads" in hash and "tab=heads" in hash:
        expect(page.get_by_test_id("head-table")).to_be_visible(timeout=PATIENCE)
    page.evaluate("document.activeElement?.blur()")
    unreached = page.evaluate(
        """() => {
          const all = [...document.querySelectorAll(
            'button, select, input, summary, a[href], [role=button], [role=listbox]')];
          const seen = (one) => one.checkVisibility({visibilityProperty: true}) && !one.disabled;
          const group = (one) => one.closest('[role=radiogroup], [role=group], [role=application]');
          return all.filter(seen).filter((one) => one.tabIndex < 0
            && !group(one)?.querySelector('[tabindex="0"]') && group(one)?.tabIndex !== 0)
            .map((one) => one.outerHTML.slice(0, 120));
        }"""
    )
    assert unreached == []


@pytest.mark.full
def test_what_is_empty_says_what_to_do(visit: Open) -> None:
    page = visit("tab=heads&kinds=X-type&only=entropy%3E%3D1e9")
    expect(page.get_by_test_id("no-heads")).to_be_visible(timeout=PATIENCE)
    page.get_by_test_id("no-heads").get_by_role("button").click()
    expect(page.get_by_test_id("row-L0H0")).to_be_visible()
    page = visit("tab=map&search=qqqq")
    expect(page.get_by_test_id("search-count")).to_contain_text("Try")
