"""A view opens with what Python chose for it: every menu shows a choice."""

from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page, expect

import attention_atlas as aa
from tests.web.maps import GREEN, PINK, SEEN, pixels, settled


@pytest.mark.full
def test_a_saved_map_that_opens_at_once_is_drawn_in_full(
    mapped: dict[str, aa.Atlas], page: Page, tmp_path: Path
) -> None:
    saved = aa.matrix_view(mapped["gpt-map"]).save(tmp_path / "page.html")
    page.add_init_script(
        SEEN + "; performance.now = () => 50;"
    )  # milliseconds since it was asked for
    page.goto(saved.as_uri())
    page.wait_for_selector("html[data-state=ready]", timeout=10_000)


@pytest.mark.full
@pytest.mark.parametrize("colour", [None, "norm", "position"])
def test_a_matrix_view_opens_with_its_colour_chosen_and_its_points_coloured(
    colour: str | None, mapped: dict[str, aa.Atlas], page: Page, tmp_path: Path
) -> None:
    atlas = mapped["gpt-map"]
    view = aa.matrix_view(atlas) if colour is None else aa.matrix_view(atlas, colour=colour)
    saved = view.save(tmp_path / "page.html")
    page.add_init_script(SEEN)
    page.goto(saved.as_uri())
    page.wait_for_selector("html[data-state=ready]")
    settled(page)
    menu = page.get_by_test_id("colour")
    expect(menu).not_to_have_value("")
    assert menu.evaluate("menu => menu.selectedIndex") >= 0
    if colour is not None:
        expect(menu).to_have_value(colour)
        return
    expect(menu.locator("option:checked")).to_have_text("query or key")
    picture = pixels(page).reshape(-1, 3).astype(int)
    for expected in (GREEN, PINK):
        assert (np.abs(picture - expected).max(1) < 6).any()
