"""Weights, what is moved, contributions and logits, with and without sinks, as a person does it."""

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf
from playwright.sync_api import Page, expect

import attention_atlas as aa
from attention_atlas.page.answers.sinks import sinks
from attention_atlas.page.hosts.launch import start
from tests.made_once import MadeOnce
from tests.tolerance import STORED
from tests.web.maps import eventually

HEAD, LAYER = "L2H1", 2


def read(page: Page) -> Any:
    """The numbers beside the looked-at tokens; 0 where none is shown."""
    script = "all => all.map(one => Number(one.dataset.weight ?? 0))"
    keys = page.get_by_test_id("key-column-0").locator("[data-testid^=key-0-]")
    return np.array(keys.evaluate_all(script))


def agree(page: Page, expected: Any) -> None:
    """Every number that is shown is right; those left out are small."""
    page.wait_for_function(
        "wanted => [...document.querySelectorAll('[data-testid^=key-0-]')]"
        ".some(one => Math.abs(Number(one.dataset.weight ?? 0) - wanted) < 2e-3)",
        arg=float(expected[np.abs(expected).argmax()]),
        timeout=10_000,
    )
    found = read(page)
    shown = found != 0
    np.testing.assert_allclose(found[shown], expected[shown], rtol=0, atol=STORED)
    assert np.abs(expected[~shown]).max(initial=0) <= np.abs(found[shown]).min() + STORED


@pytest.mark.parametrize("view", ["head", "model"])
def test_a_link_asks_for_each_packet_once_and_draws_once(
    page: Page, page_url: Callable[..., str], view: str
) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url.partition("/api/")[2]))
    page.add_init_script(
        "window.painted = []; const put = CanvasRenderingContext2D.prototype.putImageData;"
        "CanvasRenderingContext2D.prototype.putImageData = function (...what) {"
        "put.apply(this, what); window.painted.push(`${this.canvas.height} ${what.slice(1)}`) };"
    )
    page.goto(page_url("gpt", f"tab=text&view={view}&shown=contribution"))
    page.wait_for_selector("html[data-state=ready]")
    page.wait_for_load_state("networkidle")
    first = [path for path in asked if path.startswith(("about", "as/", "edges", "input", "sinks"))]
    edges = "as/contribution/-/edges/0/decoder"
    shares = [edges] if view == "model" else [edges, f"{edges}/0"]  # the layer in view comes first
    assert sorted(first) == ["about", *shares, "input/0", "sinks/0/decoder"]
    if view == "model":  # the legend of contributions does not change the room after the drawing
        painted = page.evaluate("window.painted")
        assert len({line.split()[0] for line in painted}) == 1
        assert len(set(painted)) == len(painted)


def test_each_switch_shows_its_own_numbers(
    open_page: Callable[..., Page], subjects: dict[str, Any]
) -> None:
    atlas: aa.Atlas = subjects["gpt"]
    heads = atlas.shape(0, LAYER)[0]
    row = len(atlas.tokens(0)) - 1
    page = open_page("gpt", f"heads={HEAD}")
    page.get_by_test_id(f"query-0-{row}").click()
    agree(page, atlas.weights(0, HEAD)[row])
    page.get_by_test_id("shown-contribution").click()
    agree(page, heads * atlas.contributions(0, HEAD)[row])
    expect(page.get_by_text("against it")).to_be_visible()
    page.get_by_test_id("shown-moved").click()
    whole = np.stack([atlas.moved_norms(0, f"L{LAYER}H{head}")[row] for head in range(heads)])
    agree(page, heads * whole[1] / whole.sum())
    page.get_by_test_id("shown-contribution").click()
    expect(page.get_by_test_id("value-weighted")).to_have_count(0)  # it would change nothing
    page.get_by_test_id("no-sinks").check()
    expect(page.get_by_text("an even head), without sinks")).to_be_visible()
    found = [sink.position for sink in sinks(atlas, 0, atlas.towers[0].name).sinks]
    assert found
    left = atlas.moved_rows("contribution", found).rows(0, LAYER, None, [1], [row])[0, 0]
    agree(page, heads * left)
    page.get_by_test_id("shown-weights").click()
    weights = atlas.weights(0, HEAD)[row].astype(float)
    weights[found] = 0
    agree(page, weights / weights.sum())
    eventually(page, lambda: "withoutSinks=true" in page.url)
    page.keyboard.press("u")
    agree(page, heads * left)


def test_rounded_shares_are_shown_as_they_are(
    page: Page, subjects: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attention_atlas.page.answers.edges.EXACT", 0)
    atlas: aa.Atlas = subjects["gpt"]
    heads, row = atlas.shape(0, LAYER)[0], len(atlas.tokens(0)) - 1
    with start([atlas], port=0) as running:
        for shown in ("contribution", "moved"):
            page.goto("about:blank")  # else only the picks would change
            with page.expect_response(lambda answer: "/edges/0/" in answer.url) as sent:
                page.goto(f"{running.url}#tab=text&heads={HEAD}&shown={shown}")
            assert sent.value.ok and f"as/{shown}/-" in sent.value.url
            page.get_by_test_id(f"query-0-{row}").click()
            if shown == "contribution":
                agree(page, heads * atlas.contributions(0, HEAD)[row])
                continue
            names = [f"L{LAYER}H{head}" for head in range(heads)]
            whole = np.stack([atlas.moved_norms(0, name)[row] for name in names])
            agree(page, heads * whole[1] / whole.sum())


@pytest.mark.parametrize("view", ["model", "neuron", "heat"])
def test_every_view_of_the_text_tab_draws_contributions(
    view: str, open_page: Callable[..., Page]
) -> None:
    page = open_page("gpt", f"heads={HEAD}&view={view}&shown=contribution")
    expect(page.get_by_test_id("shown-contribution")).to_have_attribute("aria-checked", "true")
    canvas = page.locator("main canvas, canvas").first
    expect(canvas).to_be_visible()
    page.get_by_test_id("shown-weights").click()
    page.wait_for_url(lambda url: "shown=" not in url)  # an address is written a moment later


def test_the_logit_view_tells_heads_apart(
    open_page: Callable[..., Page], subjects: dict[str, Any]
) -> None:
    atlas: aa.Atlas = subjects["gpt"]
    page = open_page("gpt", "view=logit")
    found = atlas.attribution(0)
    expect(page.get_by_test_id("logit-total")).to_contain_text(_amount(found.total))
    best = found.heads().sort_values("adds").iloc[-1]
    cell = page.get_by_test_id(f"logit-{best['head']}")
    expect(cell).to_have_attribute("aria-label", f"{best['head']} adds {_amount(best['adds'])}")
    cell.click()
    layer = next(x for x in found.layers if best["head"] in x.heads)
    adds = layer.adds[layer.heads.index(best["head"])]
    tokens = page.get_by_test_id("logit-text").locator("span")
    title = tokens.nth(int(adds.argmax())).get_attribute("title")
    assert title is not None and title.endswith(_amount(float(adds.max())))
    ids = atlas.tokens(0)["id"].tolist()
    page.get_by_test_id("logit-token").select_option(str(ids[1]))
    page.get_by_test_id("logit-against").select_option(str(ids[3]))
    both = atlas.attribution(0, ids[1], ids[3])
    expect(page.get_by_test_id("logit-total")).to_contain_text(_amount(both.total))


def _amount(value: float) -> str:
    digits = 3 if abs(value) < 0.1 else 2
    return f"{'−' if value < 0 else '+'}{abs(value):.{digits}f}"


def test_a_saved_page_has_the_switch_for_what_it_showed(
    page: Page, subjects: dict[str, Any], tmp_path: Path
) -> None:
    atlas: aa.Atlas = subjects["gpt"]
    view = aa.head_view(atlas, heads=[HEAD])
    view.picks = {"shown": "contribution"}
    page.goto(view.save(tmp_path / "page.html").as_uri())
    page.wait_for_selector("html[data-state=ready]")
    row = len(atlas.tokens(0)) - 1
    heads = atlas.shape(0, LAYER)[0]
    page.get_by_test_id(f"query-0-{row}").click()
    agree(page, heads * atlas.contributions(0, HEAD)[row])
    page.get_by_test_id("no-sinks").check()
    found = [sink.position for sink in sinks(atlas, 0, atlas.towers[0].name).sinks]
    left = atlas.moved_rows("contribution", found).rows(0, LAYER, None, [1], [row])[0, 0]
    agree(page, heads * left)
    page.get_by_test_id("shown-weights").click()
    weights = atlas.weights(0, HEAD)[row].astype(float)
    weights[found] = 0
    agree(page, weights / weights.sum())
    expect(page.get_by_test_id("shown-moved")).to_have_count(0)


def test_a_heat_map_of_contributions_says_what_its_colours_mean(
    open_page: Callable[..., Page], subjects: dict[str, Any]
) -> None:
    atlas: aa.Atlas = subjects["gpt"]
    page = open_page("gpt", f"heads={HEAD}&view=heat&shown=contribution")
    most = atlas.shape(0, LAYER)[0] * np.abs(atlas.contributions(0, HEAD)).max()
    expect(page.get_by_test_id("legend-name")).to_have_text("contribution (1: an even head)")
    expect(page.get_by_test_id("legend-most")).to_have_text(f"full colour at ±{most:.3f}")


def test_each_view_says_what_blue_and_orange_mean(open_page: Callable[..., Page]) -> None:
    page = open_page("gpt", f"heads={HEAD}&view=model&shown=contribution")
    expect(page.get_by_text("orange: against it")).to_be_visible()
    page = open_page("gpt", f"heads={HEAD}&view=read&shown=contribution")
    legend = page.get_by_label("scale", exact=True)
    expect(legend).to_contain_text("contribution (1: an even head)")
    expect(legend).to_contain_text("against the layer's output −")
    page.get_by_test_id("shown-weights").click()
    expect(legend).not_to_contain_text("against")
    expect(legend).to_contain_text("0")


def test_shares_below_zero_have_a_colour_of_their_own_in_the_text(
    open_page: Callable[..., Page], subjects: dict[str, Any]
) -> None:
    """The colour of a head, which weights have, may be like that of shares below zero."""
    heads = subjects["gpt"].shape(0, LAYER)[0]
    for head in range(heads):
        page = open_page("gpt", f"heads=L{LAYER}H{head}&view=read&shown=contribution")
        words = page.locator("[data-testid^=read-text-]").evaluate_all(
            "all => all.map(one => [Number(one.dataset.weight), one.style.background])"
        )
        signs = {"43, 123, 186": 1, "225, 129, 44": -1}
        for weight, colour in words:
            found = [sign for rgb, sign in signs.items() if rgb in colour]
            assert found == [-1 if weight < 0 else 1]


def test_pointing_at_the_switch_asks_for_what_it_would_show(open_page: Callable[..., Page]) -> None:
    page = open_page("gpt", f"heads={HEAD}")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    with page.expect_response(lambda answer: "as/contribution/-/edges" in answer.url):
        page.get_by_test_id("shown-contribution").hover()
    once = [url for url in asked if "as/contribution/-/edges" in url]
    page.get_by_test_id("shown-contribution").click()
    expect(page.get_by_text("against it")).to_be_visible()
    assert len(once) == 1
    # Nothing had to be waited for.
    assert [url for url in asked if "as/contribution/-/edges" in url] == once


def _long_model(folder: Path) -> None:
    """One input of 2,300 tokens: long enough for tiles."""
    torch.manual_seed(0)
    config = hf.GPT2Config(
        vocab_size=300, n_positions=2300, n_layer=2, n_head=4, n_embd=64, bos_token_id=0,
        eos_token_id=0, initializer_range=0.3,
    )  # fmt: skip
    ids = torch.randint(0, 300, (1, 2300))
    aa.capture(
        hf.GPT2LMHeadModel(config).eval(), [{"input_ids": ids}], path=folder / "long.atlas",
        progress=False,
    )  # fmt: skip


@pytest.mark.full
def test_the_map_of_a_long_input_shows_contributions_with_their_signs(
    page: Page, built: None, made_once: MadeOnce
) -> None:
    atlas = aa.open(made_once("long-model", _long_model) / "long.atlas")
    expected = 4 * atlas.contributions(0, "L1H2", list(range(1000, 1040)))
    with start([atlas], port=0) as running:
        view = "view=heat&heads=L1H2&shown=contribution&tileView=[1020,1010,40]"
        page.goto(f"{running.url}#tab=text&{view}")
        page.wait_for_selector("[data-testid=tile-panel][data-exact=true][data-missing='0']")
        expect(page.get_by_test_id("legend-name")).to_have_text("contribution (1: an even head)")
        expect(page.get_by_text("against it")).to_be_visible()
        stage: Any = page.get_by_test_id("tile-stage").bounding_box()
        signs = set()
        for down, right in product((0.3, 0.4, 0.5, 0.6, 0.7), (0.2, 0.3, 0.35, 0.4, 0.5)):
            x = stage["x"] + 104 + right * (stage["width"] - 104)
            page.mouse.move(x, stage["y"] + 94 + down * (stage["height"] - 94))
            row, column = (
                int(page.locator(f"[data-testid=cell-text] p >> nth={at}").locator("b").inner_text()
                    .replace(",", "")) for at in (0, 1)
            )  # fmt: skip
            told = page.get_by_test_id("cell-words").inner_text()
            value = float(told.removeprefix("contribution ").replace("−", "-"))
            # Tiles take the model's own log-sum-exp, and roots are rounded once more.
            assert value == pytest.approx(float(expected[row - 1000, column]), rel=0.05, abs=1e-6)
            signs.add(value < 0)
        assert signs == {True, False}
