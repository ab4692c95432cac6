"""Hiding tokens, by keys as a person does it, against a softmax over what is left."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from playwright.sync_api import Page

import attention_atlas as aa
from tests.tolerance import reading_tolerance

pytestmark = pytest.mark.full

HEADS = {"gpt": "L2H1", "bert": "L3H4", "seq2seq": "cross.L1H1", "plain": "L2H1"}
SLOW = settings(
    max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def _softmax_left(atlas: aa.Atlas, head: str, row: int, hidden: set[int]) -> Any:
    """The row computed anew from its logits with the hidden keys masked, in float64."""
    logits = atlas.terms(head).scale * (
        atlas.queries(head, 0).astype(float)[row] @ atlas.keys(head, 0).astype(float).T
    )
    seen = atlas.terms(head).seen[row].copy()
    seen[list(hidden)] = False
    grown = np.where(seen, np.exp(logits - logits.max()), 0)
    return grown / grown.sum()


def _read(page: Page, m: int) -> Any:
    """The numbers beside the looked-at tokens; 0 where none is shown."""
    script = "all => all.map(one => Number(one.dataset.weight ?? 0))"
    keys = page.get_by_test_id("key-column-0").locator("[data-testid^=key-0-]")
    found = np.array(keys.evaluate_all(script))
    assert found.shape == (m,)
    return found


def _agree(found: Any, expected: Any, off: float) -> None:
    """Every number shown is right, and those left out (beyond the strongest) are the weakest."""
    shown = found > 0
    np.testing.assert_allclose(found[shown], expected[shown], rtol=0, atol=off)
    assert shown.sum() >= min(10, (expected > 1e-3).sum())
    assert expected[~shown].max(initial=0) <= found[shown].min() + off


@pytest.mark.parametrize("name", HEADS)
def test_hidden_tokens_leave_a_softmax_over_the_rest(
    name: str, open_page: Callable[..., Page], subjects: dict[str, Any]
) -> None:
    head = HEADS[name]
    atlas: aa.Atlas = subjects["gpt" if name == "plain" else name]
    n, m = atlas.weights(0, head).shape
    row = n - 1
    page = open_page(name, f"heads={head}")
    page.get_by_test_id(f"query-0-{row}").click()
    places = st.integers(0, min(m, n) - 2) if n == m else st.integers(0, m - 1)

    off = reading_tolerance(atlas, 0, head)

    @SLOW
    @given(st.lists(places, max_size=8))
    def toggled(order: list[int]) -> None:
        page.evaluate("attentionAtlas.setPicks({hidden: {}})")
        hidden: set[int] = set()
        for place in order:
            key = page.get_by_test_id(f"key-0-{place}")
            key.hover()
            page.keyboard.press("h")
            hidden ^= {place}
            if len(hidden) == m:
                return
        page.mouse.move(5, 5)
        expected = _softmax_left(atlas, head, row, hidden)
        # what is left is divided by its sum, and its rounding with it
        left = max(1 - float(atlas.weights(0, head)[row][list(hidden)].sum()), off)
        _agree(_read(page, m), expected, (1 + m) * off / left)

    toggled()
    page.evaluate("attentionAtlas.setPicks({hidden: {}})")
    _agree(_read(page, m), atlas.weights(0, head)[row], off)


def test_undo_brings_everything_back(
    open_page: Callable[..., Page], subjects: dict[str, Any]
) -> None:
    page = open_page("gpt", "heads=L2H1")
    page.get_by_test_id("query-0-9").click()
    start = _read(page, 17)
    for place in (0, 4, 2):
        page.get_by_test_id(f"key-0-{place}").hover()
        page.keyboard.press("h")
    assert np.abs(_read(page, 17) - start).max() > 0.01
    page.mouse.move(5, 5)
    for _ in range(3):
        page.keyboard.press("u")
    np.testing.assert_array_equal(_read(page, 17), start)
