"""How long does a person wait for a view of contributions, beside one of weights? In Chromium.

GPT-2's shape, 128 tokens, the clock on the wall, both sides in turns. A server in this process has
kept no answer, no weights and no products when a page is opened. A *new server* was started a
second before and asked for nothing; what it does by itself meanwhile counts. `painted` is the last
stroke on a canvas before half a second without any.

    opened   a link, from the start of the navigation
    turned   weights have been on screen for a second: from the click on the switch, without
             pointing at it before, beside going to another input that shows weights
"""

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

import attention_atlas as aa
from attention_atlas.page.hosts.figure import find_browser
from attention_atlas.page.hosts.launch import start
from attention_atlas.page.live.answers import Answers

TURNS = 9
VIEWS = ("head", "model")
QUIET, SECOND = 500, 1000  # milliseconds
# The clock of the page, at the last stroke of any canvas.
WATCH = """
window.__stroke = 0;
const put = CanvasRenderingContext2D.prototype.putImageData;
CanvasRenderingContext2D.prototype.putImageData = function (...what) {
  put.apply(this, what);
  window.__stroke = performance.now();
};
"""
CLICK = "document.querySelector('[data-testid=shown-contribution]').click()"
NEXT = "attentionAtlas.setPicks({input: attentionAtlas.picks().input === 0 ? 1 : 0})"


@contextmanager
def served(atlas: aa.Atlas) -> Iterator[tuple[str, Answers]]:
    """A server of an atlas, and what it keeps."""
    with start([atlas], port=0) as running:
        app: Any = running._server.config.app
        yield running.url, app.state.answers[0]


def forget(answers: Answers) -> None:
    """Let a server forget what it has kept of answers and layers."""
    grown = vars(answers.session.subject)
    answers._forget()
    grown["_moved"].clear()
    grown["_recent"]._kept.clear()


def strokes(page: Page, since: float) -> float:
    """Milliseconds from a time of the page to its last stroke, when no other follows."""
    last = 0.0
    while True:
        page.wait_for_timeout(QUIET)
        now = float(page.evaluate("window.__stroke"))
        if now == last and now > since:
            return now - since
        last = now


def opened(browser: Browser, url: str, picks: str, deed: str = "") -> float:
    """Milliseconds from the start of a navigation, or from a deed a while later, to the end."""
    page = browser.new_context(viewport={"width": 1280, "height": 860}).new_page()
    page.add_init_script(WATCH)
    page.goto(f"{url}#{picks}", wait_until="commit")
    took = strokes(page, 0)
    if deed:
        page.wait_for_timeout(SECOND)
        since = page.evaluate(f"(() => {{ const now = performance.now(); {deed}; return now }})()")
        took = strokes(page, float(since))
    page.context.close()
    return took


def line(name: str, pairs: list[tuple[float, ...]]) -> str:
    """The medians of both sides, and the ratio of the pairs: median, and the middle half."""
    weights, shares = (statistics.median(side) for side in zip(*pairs, strict=True))
    low, middle, high = statistics.quantiles([b / a for a, b in pairs], n=4)
    return f"| {name} | {weights:.0f} ms | {shares:.0f} ms | {middle:.2f} ({low:.2f}–{high:.2f}) |"


def measure(atlas: aa.Atlas, turns: int = TURNS) -> Iterator[str]:
    """Yield the lines of the table; the first turn of each is not counted."""
    yield "| view | weights | contribution | ratio (middle half) |\n|---|---|---|---|"
    with served(atlas) as old, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser())

        def took(new: bool, picks: str, deed: str) -> float:
            with served(aa.open(atlas.path)) if new else nullcontext(old) as (url, answers):
                if new:
                    time.sleep(SECOND / 1000)
                else:
                    forget(answers)
                return opened(browser, url, picks, deed)

        for view in VIEWS:
            weights = f"tab=text&view={view}"
            link = (weights, ""), (f"{weights}&shown=contribution", "")
            switch = (weights, NEXT), (weights, CLICK)
            for name, new, sides in (
                ("opened", False, link),
                ("opened, new server", True, link),
                ("turned, new server", True, switch),
            ):
                pairs = [tuple(took(new, *side) for side in sides) for _ in range(turns + 1)]
                yield line(f"{view} view, {name}", pairs[1:])
        browser.close()
