"""A saved page draws its lines once, before it reads code and packets that they do not need."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

import attention_atlas as aa

# What happens in the page, in order: each picture of lines, and each part of its code that is run.
SEEN = """
window.seen = [];
const put = CanvasRenderingContext2D.prototype.putImageData;
CanvasRenderingContext2D.prototype.putImageData = function (...what) {
  put.apply(this, what);
  window.seen.push('lines');
};
Object.defineProperty(window, 'atlasRun', {
  set(run) { window.seen.push('code'); this.run = run; },
  get() { return this.run; },
});
"""
LOGITS = "This saved page does not contain "
PARTS = "[...document.querySelectorAll('script[data-part]')].map(script => script.dataset.part)"


@pytest.fixture
def saved(subjects: dict[str, Any], page: Page, tmp_path: Path) -> Page:
    page.add_init_script(SEEN)
    page.goto(aa.head_view(subjects["gpt"]).save(tmp_path / "page.html", exact=True).as_uri())
    return page


def test_lines_are_drawn_before_the_code_of_bars_is_run(saved: Page) -> None:
    saved.wait_for_selector("html[data-state=ready]")
    seen = saved.evaluate("window.seen")
    assert seen[0] == "lines" and "code" in seen


def test_the_names_of_sinks_do_not_have_the_lines_drawn_again(saved: Page) -> None:
    saved.get_by_test_id("no-sinks").wait_for()  # they are named after the first picture
    assert saved.evaluate("window.seen").count("lines") == 1


def test_each_view_of_a_page_of_texts_finds_its_code_and_no_other_is_there(saved: Page) -> None:
    parts = saved.evaluate(PARTS)
    assert {"bars", "views"} <= set(parts) and "more" not in parts
    for view in ("heat", "neuron", "logit", "read", "model", "head"):
        saved.get_by_test_id(f"view-{view}").click()
        saved.wait_for_selector("html[data-state=ready]")
        told = saved.get_by_test_id("sorry").all_inner_texts()
        assert [words.startswith(LOGITS) for words in told] == [True] * (view == "logit")
