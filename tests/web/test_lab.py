"""The Lab in a real Chromium: attention is edited in a view, and the model's answer follows."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
import torch
from playwright.sync_api import Browser, Page, expect

import attention_atlas as aa
from attention_atlas.lab.saved_tests.label import label_test
from attention_atlas.lab.saved_tests.run import run_test
from attention_atlas.models.load import load
from attention_atlas.page.answers.heads import measured
from attention_atlas.page.hosts.launch import start
from attention_atlas.page.live.model import LiveModel
from attention_atlas.page.wire.packing import Failure, pack
from tests.made_once import MadeOnce
from tests.tolerance import STORED, chain_tolerance
from tests.web.maps import eventually

DOCTOR = "The doctor asked the nurse a question. She"
REPEATED = "river candle seven marble garden window river candle seven marble garden"
TEXTS = [DOCTOR, REPEATED, "The cat sat on the mat and the dog lay on the rug."]
NURSE, SHE = 5, 9
Open = Callable[..., Page]


@pytest.fixture(scope="module")
def atlas(made_once: MadeOnce) -> aa.Atlas:
    def make(folder: Path) -> aa.Atlas:
        return aa.capture("builtin:gpt", TEXTS, path=folder / "lab.atlas", progress=False)

    atlas = aa.open(made_once("lab", make) / "lab.atlas")
    assert atlas.tokens(0)["text"].tolist()[NURSE] == "Ġnurse"
    assert len(atlas.tokens(0)) == SHE + 1
    return atlas


@pytest.fixture(scope="module")
def served(built: None, atlas: aa.Atlas) -> Iterator[str]:
    """The address of an atlas with its model."""
    with start([atlas], port=0, models=[LiveModel("builtin:gpt")]) as running:
        yield running.url


@pytest.fixture
def visit(page: Page, served: str) -> Open:
    def go(hash: str = "") -> Page:
        page.goto(f"{served}#{hash}")
        page.wait_for_selector("html[data-state=ready]", timeout=30_000)
        return page

    return go


class Said(NamedTuple):
    """What transformers alone gives for the next token."""

    likely: npt.NDArray[np.float64]  # (V,)
    bound: float  # how far another float32 run may be off


def said(text: str, *, head: tuple[int, int] | None = None, unseen: int | None = None) -> Said:
    """Run the model without any code of ours.

    head    layer and number; its slice of what enters the output projection is zeroed
    unseen  a token that the attention mask hides from all others
    """
    loaded = load("builtin:gpt")
    ids = loaded.tokenizer(text, return_tensors="pt")["input_ids"]
    model, places = loaded.model, torch.arange(ids.shape[1])[None]
    seen = (places != (-1 if unseen is None else unseen)).long()
    layer, number = head or (0, 0)
    width = model.config.n_embd // model.config.n_head

    def cut(_module: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        moved = inputs[0].clone()
        if head is not None:
            moved[..., number * width : (number + 1) * width] = 0
        return (moved, *inputs[1:])

    removed = model.transformer.h[layer].attn.c_proj.register_forward_pre_hook(cut)
    with torch.no_grad():
        logits = model(ids, attention_mask=seen, position_ids=places).logits[0, -1].double()
    removed.remove()
    # The widest product of a layer is that of its feed-forward part; a softmax halves the error.
    bound = chain_tolerance(logits, model.config.n_layer, 4 * model.config.n_embd) / 2
    return Said(torch.softmax(logits, -1).numpy(), bound)


def token(text: str) -> int:
    (number,) = load("builtin:gpt").tokenizer(text, add_special_tokens=False)["input_ids"]
    return int(number)


def settled(page: Page) -> None:
    """Wait until the bars are those of the edits in the list."""
    expect(page.get_by_test_id("bars").first).to_be_visible(timeout=30_000)
    expect(page.locator(".aa-stale")).to_have_count(0)
    expect(page.get_by_label("what the model now says")).to_have_attribute("aria-busy", "false")


def bars(page: Page) -> dict[int, tuple[float, float]]:
    """Probabilities before and after that the bars show, by token."""
    settled(page)
    rows = page.locator("[data-testid=bars] tr").evaluate_all(
        "rows => rows.map(({ dataset }) => [dataset.testid, dataset.before, dataset.after])"
    )
    return {
        int(name.removeprefix("bar-")): (float(before), float(after))
        for name, before, after in rows
    }


def assert_shown(page: Page, before: Said, after: Said) -> None:
    """Bars equal what transformers gives."""
    shown = bars(page)
    assert int(before.likely.argmax()) in shown and int(after.likely.argmax()) in shown
    for number, pair in shown.items():
        for said, value in zip((before, after), pair, strict=True):
            assert value == pytest.approx(said.likely[number], abs=said.bound)


def choose(page: Page, title: str) -> None:
    page.get_by_test_id("edit-menu").get_by_text(title, exact=True).click()


def weight(page: Page, key: int, query: int, pane: int = 0) -> float:
    """The weight written beside a key while its query is under the mouse."""
    page.get_by_test_id(f"query-{pane}-{query}").hover()
    shown = page.get_by_test_id(f"key-{pane}-{key}")
    expect(shown).to_be_visible()
    return float(shown.get_attribute("data-weight") or 0)


def test_hiding_a_token_changes_lines_and_predictions_and_undo_and_link_bring_them_back(
    visit: Open, atlas: aa.Atlas
) -> None:
    looks = {str(head): atlas.weights(0, str(head))[SHE, NURSE] for head in atlas.heads()["head"]}
    head = max(looks, key=lambda name: looks[name])
    page = visit(f"heads={head}")
    seen = weight(page, NURSE, SHE)
    assert seen == pytest.approx(looks[head], abs=STORED) and seen > 0.05
    page.get_by_test_id(f"key-0-{NURSE}").click(button="right")
    choose(page, "Hide “nurse” (5) from every head")
    expect(page.get_by_test_id("lab-switch")).to_be_visible()
    expect(page.get_by_test_id("status-edits")).to_have_text("1 edit on", timeout=30_000)
    eventually(page, lambda: weight(page, NURSE, SHE) == 0)
    page.get_by_test_id("lab-view-before").click()
    eventually(page, lambda: weight(page, NURSE, SHE) == pytest.approx(seen, abs=STORED))
    page.get_by_test_id("lab-view-difference").click()
    expect(page.get_by_test_id("lines-2")).to_contain_text("after − before")
    page.get_by_test_id(f"query-0-{SHE}").hover()
    fell = page.get_by_test_id(f"key-2-{NURSE}")
    expect(fell).to_contain_text("−")
    assert float(fell.get_attribute("data-weight") or 0) == pytest.approx(-seen, abs=STORED)

    plain, edited = said(DOCTOR), said(DOCTOR, unseen=NURSE)
    assert np.abs(plain.likely - edited.likely).max() > 2 * plain.bound
    page.keyboard.press("l")
    assert_shown(page, plain, edited)
    expect(page.get_by_test_id("edit-sentence-0")).to_have_text("Hide “nurse” (5) from every head")
    eventually(page, lambda: "tab=lab" in page.url)
    link = page.url

    page.keyboard.press("u")
    expect(page.get_by_test_id("no-edits")).to_be_visible()
    assert_shown(page, plain, plain)
    page.keyboard.press("r")
    assert_shown(page, plain, edited)

    page.goto("about:blank")
    page.goto(link)
    page.wait_for_selector("html[data-state=ready]")
    assert_shown(page, plain, edited)
    expect(page.get_by_test_id("edit-receipt")).to_contain_text("✓ edits are", timeout=60_000)


@pytest.mark.full
def test_without_the_induction_head_the_bars_show_that_copying_is_lost(visit: Open) -> None:
    page = visit("tab=lab&input=1&heads=L4H5")
    window = token(" window")
    assert bars(page)[window][0] > 0.5
    page.get_by_test_id("draft-add").click()
    expect(page.get_by_test_id("edit-sentence-0")).to_have_text("Take L4H5 out")
    expect(page.get_by_test_id("verdict")).to_be_visible(timeout=30_000)
    before, after = bars(page)[window]
    assert before > 0.5 and after < 0.2 * before
    assert_shown(page, said(REPEATED), said(REPEATED, head=(4, 5)))
    # Nothing before the edit changes, and its own weights do not.
    for name in ("L0H0", "L3H5", "L4H5"):
        assert page.get_by_test_id(f"change-{name}").get_attribute("data-change") == "0"
    changed = page.locator("[data-testid^=change-L5]").evaluate_all(
        "heads => heads.map((head) => Number(head.dataset.change))"
    )
    assert max(changed) > 0
    page.get_by_test_id("edit-on-0").uncheck()
    expect(page.get_by_test_id("verdict")).to_have_count(0)
    assert bars(page)[window][1] == pytest.approx(before, abs=1e-6)
    page.get_by_test_id("edit-on-0").check()
    page.get_by_test_id("write").click()
    expect(page.get_by_test_id("written-before")).to_contain_text(" window", timeout=30_000)
    expect(page.get_by_test_id("written-after").locator("mark")).to_be_visible()


@pytest.mark.full
def test_a_slider_scales_a_head_and_one_drag_is_one_step_of_undo(visit: Open) -> None:
    page = visit("tab=lab&input=1&heads=L4H5")
    page.get_by_test_id("draft-kind").select_option("scale")
    page.get_by_test_id("draft-add").click()
    dial = page.get_by_test_id("edit-dial-0")
    dial.focus()
    for _ in range(10):
        page.keyboard.press("ArrowLeft")
    expect(page.get_by_test_id("edit-sentence-0")).to_have_text("Multiply what L4H5 moves by 0")
    assert_shown(page, said(REPEATED), said(REPEATED, head=(4, 5)))
    page.get_by_test_id("undo").click()
    expect(page.get_by_test_id("edit-sentence-0")).to_have_text("Multiply what L4H5 moves by 0.5")


def test_an_edit_of_a_token_stays_listed_but_says_that_it_is_for_another_input(
    visit: Open,
) -> None:
    page = visit("tab=lab&heads=L3H2")
    page.get_by_test_id("draft-kind").select_option("token")
    page.get_by_test_id("draft-token").select_option(str(NURSE))
    page.get_by_test_id("draft-add").click()
    expect(page.get_by_test_id("verdict")).to_be_visible(timeout=30_000)
    page.get_by_test_id("input").select_option("2")
    expect(page.get_by_test_id("edit-elsewhere-0")).to_contain_text("Made for another input")
    expect(page.get_by_test_id("edit-sentence-0")).to_have_text("Hide “nurse” (5) from L3H2")
    expect(page.get_by_test_id("verdict")).to_have_count(0)
    page.get_by_test_id("edit-elsewhere-0").get_by_role("button").click()
    expect(page.get_by_test_id("verdict")).to_be_visible()


@pytest.mark.full
def test_one_click_on_a_card_tests_the_label_of_its_head(visit: Open, atlas: aa.Atlas) -> None:
    kinds = measured(atlas)[1].kinds.sort_values("margin")
    sure, other = kinds.iloc[-1], kinds.iloc[-2]
    page = visit(f"tab=heads&heads={sure['head']}")
    button, verdict = page.get_by_test_id("test-label"), page.get_by_test_id("label-verdict")
    expect(page.get_by_test_id("card-kind")).to_have_text(sure["kind"])
    button.focus()
    page.keyboard.press("Enter")
    expect(verdict).to_contain_text("On 24 new sentences", timeout=30_000)
    expect(button).to_have_text("Test this label")
    outcome = run_test(label_test(sure["head"], sure["kind"]), load("builtin:gpt"))
    assert outcome.verdict == "holds"
    expect(verdict).to_contain_text("The label holds.")
    expect(verdict).to_contain_text(f"{outcome.mean.low:+.2f} to {outcome.mean.high:+.2f}")
    page.get_by_test_id(f"cell-{other['head']}").click()
    expect(page.get_by_test_id("card").locator("h2")).to_have_text(other["head"])
    expect(verdict).to_be_empty()
    held: list[Any] = []
    page.route("**/api/test_label", lambda route: held.append(route))
    button.click()
    expect(button).to_have_text("testing…")
    held[0].fulfill(body=pack(Failure("not now")))
    expect(verdict).to_have_text("Not now.")


def test_the_keyboard_alone_edits_a_line(visit: Open) -> None:
    page = visit("heads=L3H2")
    page.get_by_test_id("query-column-0").focus()
    page.keyboard.press("End")
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    page.keyboard.press("Home")
    for _ in range(NURSE):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("e")
    first = page.get_by_test_id("offer").first
    expect(first).to_be_focused()
    expect(first).to_have_text("Cut the line “She” (9) → “nurse” (5) in L3H2")
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("edit-menu")).to_have_count(0)
    expect(page.get_by_test_id("key-column-0")).to_be_focused()
    page.keyboard.press("e")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("status-edits")).to_have_text("1 edit on", timeout=30_000)
    page.keyboard.press("v")
    expect(page.get_by_test_id("lab-view-difference")).to_have_attribute("aria-checked", "true")
    page.keyboard.press("l")
    expect(page.get_by_test_id("edit-sentence-0")).to_contain_text("Cut the line")
    expect(page.get_by_test_id("verdict")).to_be_visible(timeout=30_000)
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("lines-2")).to_contain_text("after − before")


@pytest.mark.full
@pytest.mark.parametrize(
    ("hash", "target", "offer"),
    [
        ("view=model", "thumb-L4H5", "Take L4H5 out"),
        ("tab=heads", "row-L4H5", "Halve L4H5"),
        ("tab=heads", "cell-L4H5", "Even attention in L4H5"),
        ("heads=L4H5", "head-5", "Double L4H5"),
        ("tab=lab", "change-L4H5", "Only the previous token in L4H5"),
    ],
)
def test_a_right_click_on_a_head_offers_its_edits_in_every_view(
    visit: Open, hash: str, target: str, offer: str
) -> None:
    page = visit(hash)
    page.get_by_test_id(target).click(button="right")
    choose(page, offer)
    expect(page.get_by_test_id("status-edits")).to_have_text("1 edit on", timeout=30_000)
    page.keyboard.press("u")
    expect(page.get_by_test_id("status-edits")).to_have_count(0)


def test_cells_of_the_heat_map_are_lines_and_strips_of_neurons_are_neurons(visit: Open) -> None:
    page = visit("view=heat&heads=L3H2")
    page.get_by_label("heat-map; arrows walk its cells").focus()
    for key in ("ArrowDown",) * (SHE + 1) + ("ArrowRight",) * NURSE:
        page.keyboard.press(key)
    page.keyboard.press("e")
    choose(page, "Cut the line “She” (9) → “nurse” (5) in L3H2")
    page.keyboard.press("3")
    expect(page.get_by_test_id("neuron-panel")).to_be_visible()
    box = page.get_by_test_id("neuron-panel").bounding_box()
    column = page.get_by_text("key k", exact=True).bounding_box()
    assert box is not None and column is not None
    page.mouse.click(column["x"] + 5, box["y"] + 60, button="right")
    expect(page.get_by_test_id("offer").first).to_contain_text("of the key of L3H2 to 0, only at")
    page.keyboard.press("Escape")
    page.keyboard.press("v")
    expect(page.get_by_test_id("neuron-title")).to_contain_text("“·She” looks, after − before")


def test_the_form_makes_edits_of_every_kind_and_the_model_takes_them(visit: Open) -> None:
    page = visit("tab=lab&heads=L3H2")
    forms: list[tuple[dict[str, str], str]] = [
        ({"kind": "ablate", "by": "mean"}, "Take L3H2 out; its mean over other inputs instead"),
        ({"kind": "ablate", "by": "resample", "position": "9"},
         "Take L3H2 out; what it moves on another input instead, only at “She” (9)"),
        ({"kind": "line", "query": "9", "token": "5"},
         "Cut the line “She” (9) → “nurse” (5) in L3H2"),
        ({"kind": "pattern", "pattern": "window"},
         "L3H2 looks at the first 1 and the last 4 tokens"),
        ({"kind": "neuron", "side": "value", "how": "multiply"},
         "Multiply neuron 0 of the value of L3H2 by 0"),
        ({"kind": "patch", "what": "pattern", "from": "2"},
         "L3H2 takes its pattern from “The cat sat on the mat and the dog lay …”"),
    ]  # fmt: skip
    for at, (choices, sentence) in enumerate(forms):
        for field, value in choices.items():
            page.get_by_test_id(f"draft-{field}").select_option(value)
        expect(page.get_by_test_id("draft-sentence")).to_have_text(sentence)
        page.get_by_test_id("draft-add").click()
        expect(page.get_by_test_id(f"edit-sentence-{at}")).to_have_text(sentence)
        expect(page.get_by_test_id("status-edits")).to_contain_text(
            f"{at + 1} edit", timeout=30_000
        )
        settled(page)
        expect(page.get_by_test_id("lab-trouble")).to_have_count(0)
    page.get_by_test_id("clear-edits").click()
    expect(page.get_by_test_id("no-edits")).to_be_visible()
    page.get_by_test_id("undo").click()
    expect(page.get_by_test_id("edit-list").locator("li")).to_have_count(len(forms))


def test_an_edited_input_that_the_server_forgot_is_asked_for_anew(
    browser: Browser, served: str
) -> None:
    page = browser.new_page()  # its console tells of the refusal
    refused: list[str] = []

    def forget(route: Any) -> None:
        if refused:
            route.continue_()
        else:
            refused.append(route.request.url)
            route.fulfill(status=404, body=pack(Failure("no longer kept")))

    page.route(re.compile(r"api/edges/1\d{8}/"), forget)
    page.goto(
        f"{served}#heads=L4H5&edits=[{{'on':true,'edit':{{'edit':'pattern','heads':['L4H5'],'pattern':'self'}}}}]"
    )
    page.wait_for_selector("html[data-state=ready]", timeout=30_000)
    eventually(page, lambda: len(refused) == 1)
    eventually(page, lambda: weight(page, SHE, SHE) == pytest.approx(1, abs=STORED))
    page.close()


def test_a_failure_is_a_sentence_in_the_panel_and_loses_nothing(
    browser: Browser, served: str
) -> None:
    page = browser.new_page()  # its console tells of the refusal
    page.goto(
        f"{served}#tab=lab&edits=[{{'on':true,'edit':{{'edit':'scale','heads':['L99H0'],'by':2}}}}]"
    )
    expect(page.get_by_test_id("lab-trouble")).to_contain_text("no head L99H0", timeout=30_000)
    expect(page.get_by_test_id("edit-sentence-0")).to_have_text("Multiply what L99H0 moves by 2")
    page.get_by_test_id("edit-on-0").uncheck()
    expect(page.get_by_test_id("lab-trouble")).to_have_count(0)
    settled(page)
    page.close()


def test_without_a_model_the_lab_says_how_to_attach_one(
    page: Page, page_url: Callable[..., str]
) -> None:
    page.goto(page_url("gpt", "tab=lab"))
    expect(page.get_by_test_id("sorry")).to_contain_text("--model MODEL")
    page.get_by_test_id("sorry").get_by_role("button").click()
    page.get_by_test_id("query-0-3").hover()
    page.keyboard.press("e")
    expect(page.get_by_test_id("note")).to_contain_text("--model MODEL")
    expect(page.get_by_test_id("edit-menu")).to_have_count(0)
