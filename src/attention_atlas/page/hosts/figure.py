"""How is a view saved as a picture? A headless browser opens its saved page.

The page draws its own SVG, so a figure looks like the screen. This needs Playwright
(`pip install attention-atlas[figures]`) and a Chromium on this machine.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from attention_atlas.names.errors import StoreError
from attention_atlas.page.answers.subject import Subject
from attention_atlas.page.hosts.export import save_page
from attention_atlas.store.files import write_whole

BROWSERS = (  # the first has no window and is a third faster
    "chromium-headless-shell", "chromium", "chromium-browser", "google-chrome",
    "google-chrome-stable", "chrome",
)  # fmt: skip
FLAGS = (
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
_PATIENCE = 60_000  # milliseconds
_SIZE = {"width": 1280, "height": 860}
_MARGIN = dict.fromkeys(("top", "right", "bottom", "left"), "14mm")


def find_browser() -> str:
    """Return the path of a Chromium on this machine; CHROME_PATH overrides it."""
    named = os.environ.get("CHROME_PATH")
    path = named or next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        raise StoreError(
            "a figure needs a Chromium and none was found; install one (apt install chromium) "
            "or name it in CHROME_PATH"
        )
    return path


def save_figure(path: Path, subject: Subject, picks: Mapping[str, Any]) -> None:
    """Write what the page shows with these picks as .svg or .png."""
    with tempfile.TemporaryDirectory(prefix="attention-atlas-") as folder:
        page_path = Path(folder) / "page.html"
        save_page(page_path, subject, picks, inputs=_inputs(picks))

        def draw(page: Any) -> bytes:
            page.goto(page_path.as_uri())
            _wait(page)
            return _picture(page, path.suffix)

        content = with_page(draw)
    write_whole(path, lambda part: _put(content, part))


def print_page(path: Path, html: str) -> None:
    """Write a self-contained page as a PDF, as a browser prints it."""

    def printed(page: Any) -> bytes:
        page.set_content(html)
        pdf: bytes = page.pdf(format="A4", print_background=True, margin=_MARGIN)
        return pdf

    content = with_page(printed)
    write_whole(path, lambda part: _put(content, part))


def with_page(draw: Callable[[Any], bytes]) -> bytes:
    """Call `draw` with a new page of a headless browser and return its bytes."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as problem:
        raise StoreError(
            "a figure needs Playwright; run: pip install attention-atlas[figures]"
        ) from problem
    browser_path = find_browser()

    def run() -> bytes:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=browser_path, args=list(FLAGS))
            try:
                return draw(browser.new_page(viewport=_SIZE, device_scale_factor=2))  # type: ignore[arg-type]
            finally:
                browser.close()

    # Playwright's synchronous calls refuse a thread with an event loop, as a notebook has.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(run).result()


def _inputs(picks: Mapping[str, Any]) -> list[int] | None:
    other = picks.get("other")
    return None if other is not None else [int(picks.get("input") or 0)]


def _wait(page: Any) -> None:
    page.wait_for_selector("html[data-state=ready], html[data-state=error]", timeout=_PATIENCE)
    html = page.locator("html")
    if html.get_attribute("data-state") == "error":
        raise StoreError(f"the figure cannot be drawn: {html.get_attribute('data-error')}")


def _picture(page: Any, suffix: str) -> bytes:
    """Return the page's own SVG, or a PNG of it at twice its size."""
    svg: str = page.evaluate("() => window.attentionAtlas.svg()")
    if suffix == ".svg":
        return svg.encode()
    bare = page.context.browser.new_page(device_scale_factor=2)
    bare.set_content(f'<body style="margin:0">{svg}</body>')
    picture: bytes = bare.locator("svg").first.screenshot(type="png")
    return picture


def _put(content: bytes, part: Path) -> None:
    part.write_bytes(content)
