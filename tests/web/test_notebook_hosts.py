"""The widget in Notebook 7 and in marimo, each run as a person runs it, in a real Chromium."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.web.maps import eventually
from tests.web.notebooks import free_port, jupyter, notebook, running

SIZE: Any = {"width": 1400, "height": 1600}


@pytest.mark.full
def test_the_widget_shows_in_notebook_7_and_sends_a_pick_back(
    browser: Browser, subjects: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "try.ipynb").write_text(
        notebook(
            f"import attention_atlas as aa\natlas = aa.open({str(subjects['gpt'].path)!r})\n"
            "view = aa.head_view(atlas, layer=2, heads=[1])\nview",
            "print('PICKED', view.picks['token'], view.picks['view'])",
        )
    )
    with jupyter("notebook", tmp_path) as url:
        page = browser.new_page(viewport=SIZE)
        page.goto(f"{url}/notebooks/try.ipynb")
        page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=90_000)
        _run_all(page)
        shown = page.locator(".jp-Cell").nth(0).locator(".jp-OutputArea-output")
        expect(shown.get_by_test_id("head-panel")).to_be_visible(timeout=90_000)
        shown.get_by_test_id("query-0-7").click()
        weight = shown.get_by_test_id("key-0-1")
        expect(weight).to_have_attribute("data-weight", re.compile(r"0\.\d+"))
        printed = page.locator(".jp-Cell").nth(1).locator(".jp-OutputArea-output")

        def again() -> None:
            page.locator(".jp-Cell").nth(1).locator(".cm-content").click()
            page.keyboard.press("Control+Enter")
            expect(printed).to_contain_text("'position': 7", timeout=3_000)

        eventually(page, again)
        expect(printed).to_contain_text("head")
        page.close()


# A notebook that has no kernel yet answers a run with a question.
_READY = """() => {
  const kernel = window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel;
  return kernel?.connectionStatus === "connected" && kernel.status === "idle";
}"""


def _run_all(page: Page) -> None:
    """Run all cells once the kernel is there."""
    page.wait_for_function(_READY, timeout=90_000)
    page.evaluate("void window.jupyterapp.commands.execute('notebook:run-all-cells')")


@pytest.mark.full
def test_the_widget_shows_in_marimo_and_its_cells_follow_a_pick(
    browser: Browser, subjects: dict[str, Any], tmp_path: Path
) -> None:
    atlas = str(subjects["gpt"].path)
    (tmp_path / "try.py").write_text(f"""
import marimo

app = marimo.App(width="full")


@app.cell
def _():
    import marimo as mo
    import attention_atlas as aa
    atlas = aa.open({atlas!r})
    return aa, atlas, mo


@app.cell
def _(aa, atlas):
    aa.model_view(atlas)
    return


@app.cell
def _(aa, atlas, mo):
    shown = mo.ui.anywidget(aa.head_view(atlas, layer=2, heads=[1]).widget)
    shown
    return (shown,)


@app.cell
def _(mo, shown):
    mo.md(f"PICKED {{shown.value['picks']['token']}}")
    return


if __name__ == "__main__":
    app.run()
""")
    port = free_port()
    command = [sys.executable, "-m", "marimo", "run", "try.py", "--headless", "--no-token",
               "--host", "127.0.0.1", "--port", str(port)]  # fmt: skip
    url = f"http://127.0.0.1:{port}"
    with running(command, tmp_path, f"{url}/health"):
        page = browser.new_page(viewport=SIZE)
        page.goto(url)
        expect(page.get_by_test_id("model-panel")).to_be_visible(timeout=90_000)
        expect(page.get_by_test_id("head-panel")).to_be_visible(timeout=30_000)
        page.get_by_test_id("head-panel").get_by_test_id("query-0-7").click()
        expect(page.get_by_text("PICKED")).to_contain_text("position", timeout=30_000)
        expect(page.get_by_text("PICKED")).to_contain_text("7")
        page.close()
