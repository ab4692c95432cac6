"""A tab is added by a folder and its name in one list; everything around it comes by itself."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import hatch_build
from tests.web.conftest import PATIENCE, ROOT
from tests.web.maps import picks

INDEX = """
import type { Tab } from "../../desk/tab";
import WordsPanel from "./WordsPanel.svelte";

export const words: Tab = {
  name: "words",
  title: "Words",
  about: "how many tokens the input has",
  panel: () => WordsPanel,
  hints: [{ lead: "Every token counts.", text: "That is all." }],
  status: (desk) => [{ name: "words", text: `${desk.one.rowUnits.length} tokens counted` }],
  keys: [{ key: "c", shown: "c", does: "count", act: (desk) => (desk.note = "counted again") }],
  ways: [{ key: "g", shown: "g", does: "the words", act: (desk) => desk.setTab("words") }],
};
"""
PANEL = """
<script lang="ts">
  import type { Desk } from "../../desk/desk.svelte";

  let { desk }: { desk: Desk } = $props();
  $effect(() => desk.painted());
</script>

<p data-testid="word-count">{desk.one.rowUnits.length} tokens</p>
"""


@pytest.fixture(scope="module")
def with_words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of web/ with one more tab, built; the folder that holds it."""
    root = tmp_path_factory.mktemp("new-tab")
    web = root / "web"
    shutil.copytree(ROOT / "web", web, ignore=shutil.ignore_patterns("node_modules"))
    os.symlink(ROOT / "web" / "node_modules", web / "node_modules")
    folder = web / "src" / "panels" / "words"
    folder.mkdir()
    (folder / "index.ts").write_text(INDEX)
    (folder / "WordsPanel.svelte").write_text(PANEL)
    table = web / "src" / "panels" / "tabs.ts"
    lines = table.read_text().replace("lab];", "lab, words];")
    table.write_text(lines + 'import { words } from "./words";\n')
    hatch_build.npm(web, "exec", "--", "vite", "build", "--mode", "page")
    return root / hatch_build.STATIC


@pytest.mark.full
def test_a_new_tab_is_a_folder_and_a_line(
    page: Page, page_url: Callable[..., str], with_words: Path
) -> None:
    for name in ("page.js", "page.css"):
        page.route(f"**/{name}*", lambda route, _, name=name: route.fulfill(path=with_words / name))
    page.goto(page_url("gpt"))
    page.wait_for_selector("html[data-state=ready]", timeout=PATIENCE)
    tokens = page.locator("[data-testid^=query-0-]").count()
    page.keyboard.press("g")
    expect(page.get_by_test_id("word-count")).to_have_text(f"{tokens} tokens")
    expect(page.get_by_test_id("tab-words")).to_have_attribute("aria-current", "page")
    expect(page.get_by_test_id("hints")).to_contain_text("Every token counts.")
    expect(page.get_by_test_id("status-words")).to_have_text(f"{tokens} tokens counted")
    page.keyboard.press("c")
    expect(page.get_by_test_id("note")).to_have_text("counted again")
    page.keyboard.press("?")
    expect(page.get_by_test_id("key-list")).to_contain_text("the words")
    page.keyboard.press("Escape")
    page.wait_for_url("**#*tab=words*")
    page.go_back()
    expect(page.get_by_test_id("word-count")).to_have_count(0)
    assert picks(page)["tab"] == "text"
    page.go_forward()
    expect(page.get_by_test_id("word-count")).to_be_visible()
