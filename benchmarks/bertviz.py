"""BertViz and Attention Atlas on the same attention, in one run and one browser.

    python -m benchmarks.bertviz                        the whole table
    python -m benchmarks.bertviz --tokens 16 64 --layers 6 --patience 60

Both tools make a page from the same arrays, each in a process of its own (time, memory, size); then
one Chromium, which has shown an empty page before, opens each page from disk. The browser is left
as it comes: without a GPU it composes pages by itself, and emulates none (our tests have it do so
for WebGL, which neither page needs). Painted means: the page's thread is done with the first frame
that has lines; whole: with the first that has all. BertViz draws all at once, ours the 4,000
strongest of very many before the others. Hover means: from the mouse event over a token to the same
point of the next frame. What the browser's other threads then take to bring a frame to the screen
is in none of them. Each is the median of as many openings, in turns, as fit into two minutes, five
at the most.
What BertViz loads from a CDN is answered from npm packages, so no network is timed. A page not
painted within --patience seconds counts as not shown (one whose script never ends has to be stopped
by hand: it does not answer). Every case is added to bertviz.json as it
ends, and the table drawn anew.
"""

import argparse
import json
import platform
import re
import subprocess
import sys
import tarfile
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from playwright.sync_api import Browser, Error, Page, sync_playwright

from attention_atlas.page.hosts.figure import find_browser
from benchmarks.report import write_report

HERE = Path(__file__).parent
RESULTS = HERE / "bertviz.json"
CACHE = HERE.parent / ".cache" / "bertviz"
TOOLS = ("bertviz", "atlas")
VIEWS = ("model", "head")
OPENINGS, LONG = 5, 120.0  # how often a page is opened at the most, and seconds after which no more
QUIET = 2.0  # seconds for a browser to clear away the page before
# What BertViz asks a CDN for → npm package and the file in it. Its jQuery 2.0.0 is not on npm.
PARTS = {
    "require.min.js": ("requirejs@2.3.6", "package/require.js"),
    "d3.min.js": ("d3@5.7.0", "package/dist/d3.min.js"),
    "jquery.min.js": ("jquery@2.1.4", "package/dist/jquery.min.js"),
}
# The clock of the page itself, from its own start: the task after the frame that has lines. Other
# tasks that wait, such as reading the rest of the file, come after it.
WATCH = """
window.__painted = window.__whole = null;
const watch = (name, states) => {
  const there = () => {
    const state = document.documentElement?.dataset.state;
    return state ? states.includes(state) : document.querySelector('svg line');
  };
  const look = () => there()
    ? scheduler.postTask(() => { window[name] = performance.now(); }, {priority: 'user-blocking'})
    : requestAnimationFrame(look);
  requestAnimationFrame(look);
};
watch('__painted', ['drawing', 'ready']);
watch('__whole', ['ready']);
"""
HOVER = """
() => { window.__hover = null;
  addEventListener('mousemove', event => requestAnimationFrame(() => scheduler.postTask(() => {
    window.__hover = performance.now() - event.timeStamp; }, {priority: 'user-blocking'})),
    {capture: true, once: true}); }
"""
TOKEN = {"bertviz": "#left text >> nth=5", "atlas": "[data-testid=query-0-5]"}


def attention(layers: int, heads: int, n: int) -> Any:
    """(L, H, N, N) float32: random rows that sum to one, some of them sharp."""
    draw = np.random.default_rng(0)
    whole = draw.random((layers, heads, n, n), dtype=np.float32) ** 8
    whole /= whole.sum(axis=-1, keepdims=True)
    return whole


# In a process of its own: make one page -----------------------------------------------------------


def make(tool: str, view: str, layers: int, n: int, out: Path) -> dict[str, float]:
    """Time, and the most memory over what the attention itself takes."""
    import resource

    import torch

    if tool == "bertviz":
        import bertviz as module
    else:
        import attention_atlas as module
        import attention_atlas.page.hosts.export  # so that only the work is measured
    given = tuple(torch.from_numpy(one[None]) for one in attention(layers, 12, n))
    tokens = [f"word{i}" for i in range(n)]
    before, start = psutil.Process().memory_info().rss, time.perf_counter()
    show = {"head": module.head_view, "model": module.model_view}[view]
    if tool == "bertviz":
        out.write_text(show(given, tokens, html_action="return").data, encoding="utf-8")
    else:
        show(given, tokens).save(out)
    seconds = time.perf_counter() - start
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"make_s": seconds, "memory_mb": max(0, most - before) / 1e6}


def made(tool: str, view: str, layers: int, n: int, out: Path, patience: float) -> dict[str, Any]:
    words = [sys.executable, "-m", "benchmarks.bertviz", "--make", tool, view, str(layers), str(n)]
    try:
        done = subprocess.run(
            [*words, str(out)], capture_output=True, text=True, timeout=4 * patience
        )
    except subprocess.TimeoutExpired:
        return {"trouble": f"no page in {4 * patience:.0f} s"}
    if done.returncode:
        return {"trouble": done.stderr.strip().splitlines()[-1][:200] or "killed"}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return {**found, "page_mb": out.stat().st_size / 1e6}


# In the browser -----------------------------------------------------------------------------------


def medians(found: list[dict[str, Any]]) -> dict[str, Any]:
    """Of a few openings; one that failed speaks for all."""
    if "trouble" in found[-1]:
        return found[-1]
    painted = [one["paint_ms"] for one in found]
    hovered = [one["hover_ms"] for one in found if one["hover_ms"] is not None]
    return {
        "paint_ms": float(np.median(painted)),
        "paints_ms": [round(one) for one in painted],
        "whole_ms": float(np.median([one["whole_ms"] for one in found])),
        "hover_ms": float(np.median(hovered)) if hovered else None,
    }


def opened_once(
    browser: Browser, tool: str, view: str, path: Path, patience: float
) -> dict[str, Any]:
    """Milliseconds to the first painted frame, and from hover to the next one."""
    context = browser.new_context(viewport={"width": 1280, "height": 860})
    context.set_default_timeout(patience * 1000)
    context.route(re.compile("^https:"), lambda route: route.fulfill(body=part(route.request.url)))
    page = context.new_page()
    page.add_init_script(WATCH)
    try:
        page.goto(path.as_uri(), wait_until="commit")
        whole = _wait(page, "window.__whole", patience)
        painted = float(page.evaluate("window.__painted"))
        hover = _hover(page, tool, patience) if view == "head" else None
        return {"paint_ms": painted, "whole_ms": whole, "hover_ms": hover}
    except Error as problem:
        return {"trouble": f"not painted in {patience:.0f} s ({problem.message.splitlines()[0]})"}
    finally:
        context.close()


def _hover(page: Page, tool: str, patience: float) -> float:
    """The median of three moves onto a token."""
    box = page.locator(TOKEN[tool]).bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    found = []
    for _ in range(3):
        page.mouse.move(2, 2)
        page.wait_for_timeout(200)
        page.evaluate(HOVER)
        page.mouse.move(x, y)
        found.append(_wait(page, "window.__hover", patience))
    return float(np.median(found))


def _wait(page: Page, what: str, patience: float) -> float:
    """A number of the page, when it is there; asked for now and then, so that asking costs little.

    Playwright's own waiting needs eval, which our page's policy forbids.
    """
    end = time.monotonic() + patience
    while time.monotonic() < end:
        found = page.evaluate(what)
        if found is not None:
            return float(found)
        time.sleep(0.05)
    raise Error("patience ran out")


def part(url: str) -> bytes:
    """What a CDN would answer, from npm."""
    package, file = PARTS[url.rsplit("/", 1)[1]]
    kept = CACHE / (package.replace("@", "-") + ".tgz")
    if not kept.is_file():
        from hatch_build import npm

        CACHE.mkdir(parents=True, exist_ok=True)
        npm(CACHE, "pack", package, "--silent")
    with tarfile.open(kept) as archive:
        found = archive.extractfile(file)
        assert found is not None
        return found.read()


# The run ------------------------------------------------------------------------------------------


def case(
    browser_path: str, tools: list[str], view: str, layers: int, n: int, patience: float
) -> None:
    """A row of the table for each tool. Each has a browser of its own: no page pays for another."""
    rows: dict[str, dict[str, Any]] = {
        tool: {"tool": tool, "view": view, "layers": layers, "heads": 12, "tokens": n}
        for tool in tools
    }
    found: dict[str, list[dict[str, Any]]] = {tool: [] for tool in tools}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        paths = {tool: Path(folder) / f"{tool}.html" for tool in tools}
        browsers = {}
        for tool, path in paths.items():
            rows[tool] |= made(tool, view, layers, n, path, patience)
            if "trouble" not in rows[tool]:
                browsers[tool] = playwright.chromium.launch(executable_path=browser_path)
                _warm(browsers[tool])
                rows[tool]["browser"] = browsers[tool].version
        end = time.monotonic() + LONG
        for turn in range(OPENINGS):
            for tool, browser in list(browsers.items()):
                if turn and (time.monotonic() > end or "trouble" in found[tool][-1]):
                    continue
                time.sleep(QUIET)
                found[tool].append(opened_once(browser, tool, view, paths[tool], patience))
        for browser in browsers.values():
            browser.close()
    for tool, row in rows.items():
        row |= medians(found[tool]) if found[tool] else {}
        row["load"] = psutil.getloadavg()[0]  # others may be at work on the same cores
        row |= {"date": datetime.now(UTC).date().isoformat(), "machine": machine()}
        print(json.dumps(row), file=sys.stderr, flush=True)
    both = {_which(row) for row in rows.values()}
    kept = [old for old in known() if _which(old) not in both]
    RESULTS.write_text(json.dumps([*kept, *rows.values()], indent=1) + "\n", encoding="utf-8")
    write_report(known(), HERE)


def _warm(browser: Browser) -> None:
    """An empty page first: starting a browser is no part of either tool."""
    page = browser.new_page()
    page.set_content("<svg><line x1=0 y1=0 x2=9 y2=9 stroke=red /></svg><p>text</p>")
    page.wait_for_timeout(1000)
    page.close()


def known() -> list[dict[str, Any]]:
    return json.loads(RESULTS.read_text("utf-8")) if RESULTS.is_file() else []


def _which(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("tool", "view", "layers", "tokens"))


def machine() -> str:
    memory = psutil.virtual_memory().total / 2**30
    return f"{psutil.cpu_count()} cores, {memory:.0f} GiB, {platform.system()}, no GPU"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, nargs="+", default=[16, 64, 128, 256, 512, 2048])
    parser.add_argument("--layers", type=int, nargs="+", default=[6, 12])
    parser.add_argument("--views", nargs="+", default=list(VIEWS))
    parser.add_argument("--tools", nargs="+", default=list(TOOLS))
    parser.add_argument("--patience", type=float, default=300)
    parser.add_argument("--make", nargs=5, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.make:
        tool, view, layers, n, out = given.make
        print(json.dumps(make(tool, view, int(layers), int(n), Path(out))))
        return
    browser_path = find_browser()
    for n in given.tokens:
        for layers in given.layers:
            for view in given.views:
                tools = [tool for tool in given.tools if tool == "atlas" or n <= 512]
                case(browser_path, tools, view, layers, n, given.patience)


if __name__ == "__main__":
    main()
