"""Checkpoints side by side in the page: a line for each head, against the scores themselves."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from playwright.sync_api import Page, expect

import attention_atlas as aa
from attention_atlas.models.load import load
from attention_atlas.page.hosts.launch import start
from tests.atlases import OTHER, SENTENCE
from tests.web.maps import eventually

pytestmark = pytest.mark.full


def _checkpoints(folder: Path) -> list[aa.Atlas]:
    loaded = load("builtin:gpt")
    found = []
    for number in range(3):
        given: Any = (loaded.model, loaded.processor)
        path = folder / f"step{number}.atlas"
        found.append(aa.capture(given, [SENTENCE, OTHER], path=path, progress=False))
        with torch.no_grad():  # one head of layer 2 loses its queries, more at each checkpoint
            loaded.model.transformer.h[2].attn.c_attn.weight[:, 32:64] *= 0.4
    return found


def test_lines_of_heads_over_checkpoints_are_their_scores(
    page: Page, built: None, tmp_path: Path
) -> None:
    atlases = _checkpoints(tmp_path)
    comparison = aa.compare(*atlases)
    with start(atlases, port=0) as running:
        page.goto(f"{running.url}0/#tab=heads&versus=[0,1]&heads=L2H1")
        lines = page.get_by_test_id("head-lines")
        expect(lines.locator("polyline")).to_have_count(36)
        told = page.get_by_test_id("line-told")
        for measure in ("away", "entropy"):
            page.get_by_test_id("line-score").select_option(measure)
            page.get_by_test_id("line-L2H1").dispatch_event("pointerenter")
            expected = comparison.lines(measure).table().loc["L2H1"].to_numpy()
            eventually(page, lambda: told.inner_text().startswith("L2H1"))
            shown = [float(one) for one in told.inner_text().split(": ")[1].split(" → ")]
            np.testing.assert_allclose(shown, expected, atol=6e-4)
        without = aa.compare(*atlases, without_sinks=True).lines("entropy").table().loc["L2H1"]
        assert np.abs(without.to_numpy() - expected).max() > 0.01
        page.get_by_test_id("no-sinks").check()
        expect(page.get_by_test_id("compare-note")).to_contain_text("without the sinks")
        page.get_by_test_id("line-L2H1").dispatch_event("pointerenter")
        eventually(page, lambda: told.inner_text().startswith("L2H1"))
        shown = [float(one) for one in told.inner_text().split(": ")[1].split(" → ")]
        np.testing.assert_allclose(shown, without, atol=6e-4)
        changed = comparison.lines("entropy")
        assert changed.most_changed(1)[0][0] == "L2H1"
        page.get_by_test_id("line-L1H3").dispatch_event("click")
        assert page.evaluate("attentionAtlas.picks().heads") == ["L1H3"]
