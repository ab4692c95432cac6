"""Edits from the map and from a picture, in a real Chromium."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Page, expect

import attention_atlas as aa
from attention_atlas.page.hosts.launch import start
from attention_atlas.page.live.model import LiveModel
from tests.made_once import MadeOnce
from tests.web.maps import SEEN, alone, panel, picks, settled
from tests.web.test_lab import choose
from tests.web.test_map_single import points

Open = Callable[..., Page]


def _pictures(folder: Path) -> aa.Atlas:
    dice = np.random.default_rng(0)
    paths = [folder / f"{name}.png" for name in ("one", "two")]
    for path in paths:
        Image.fromarray(dice.integers(0, 255, (32, 32, 3), np.uint8)).save(path)
    return aa.capture("builtin:vit", paths, path=folder / "vit.atlas", progress=False)


@pytest.fixture(scope="module")
def served(built: None, made_once: MadeOnce, mapped: dict[str, Any]) -> Iterator[str]:
    """Pictures with their model at 0/, texts with maps and their model at 1/."""
    vit = aa.open(made_once("lab-vit", _pictures) / "vit.atlas")
    models = [LiveModel("builtin:vit"), LiveModel("builtin:gpt")]
    with start([vit, mapped["gpt-map"]], port=0, models=models) as running:
        yield running.url


@pytest.fixture
def visit(page: Page, served: str) -> Open:
    def go(path: str) -> Page:
        page.add_init_script(SEEN)
        page.goto(f"{served}{path}")
        page.wait_for_selector("html[data-state=ready]", timeout=30_000)
        return page

    return go


@pytest.mark.full
def test_a_patch_is_hidden_and_the_picture_shows_where_attention_went(visit: Open) -> None:
    page = visit("0/#tab=image&heads=L2H3")
    box = page.get_by_test_id("image-canvas").bounding_box()
    assert box is not None
    middle, right = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.click(middle, right)
    expect(page.get_by_test_id("image-token")).to_contain_text("row")
    page.keyboard.press("k")  # as a key: it is looked at
    page.mouse.click(middle, right, button="right")
    expect(page.get_by_test_id("edit-menu")).to_be_visible()
    offers = page.get_by_test_id("offer").all_inner_texts()
    (hide,) = [
        offer for offer in offers if offer.startswith("Hide the patch in row") and "every" in offer
    ]
    choose(page, hide.strip())
    expect(page.get_by_test_id("status-edits")).to_have_text("1 edit on", timeout=30_000)
    page.get_by_test_id("lab-view-difference").click()
    expect(page.get_by_test_id("image-legend")).to_contain_text("after − before")
    expect(page.get_by_test_id("image-legend")).to_contain_text("−0.")
    page.keyboard.press("l")
    expect(page.get_by_test_id("bars")).to_be_visible()


@pytest.mark.full
def test_a_right_click_on_the_map_edits_a_head_or_the_token_of_a_point(
    visit: Open, mapped: dict[str, Any]
) -> None:
    page = visit("1/#tab=map")
    settled(page)
    left, top, side = panel(page, "L4H5")
    page.mouse.click(left + side / 2, top + side / 2, button="right")
    expect(page.get_by_test_id("offer").first).to_have_text("Take L4H5 out")
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("edit-menu")).to_have_count(0)
    assert picks(page)["mapHead"] is None
    page.mouse.click(left + side / 2, top + side / 2)
    settled(page)
    places, table = points(page, mapped["gpt-map"], "L4H5")
    keys = [at for at in alone(places, 16) if table.loc[at, "side"] == "key"]
    point = keys[0]
    page.mouse.click(*places[point], button="right")
    chosen = picks(page)
    assert chosen["input"] == table.loc[point, "input"]
    position = int(table.loc[point, "position"])
    assert chosen["token"] == {"side": "key", "position": position}
    first = page.get_by_test_id("offer").first
    expect(first).to_contain_text("from L4H5")
    expect(first).to_contain_text(f"({position})")
    first.click()
    expect(page.get_by_test_id("status-edits")).to_have_text("1 edit on", timeout=30_000)
    expect(page.get_by_test_id("lab-switch")).to_be_visible()
