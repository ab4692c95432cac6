"""What does a person wait for on a head of a million tokens? Frames, colours, points, bytes."""

import statistics
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

import attention_atlas as aa
from attention_atlas.page.hosts.figure import FLAGS, find_browser
from attention_atlas.page.hosts.launch import start

SHOWN = "[data-testid=crowd-canvas]:not([hidden])"
SEEN = "try { localStorage.setItem('attention-atlas-hints', 'seen') } catch {}"
PATIENCE = 120_000
TIMES = 5

# Resolves when the picture has changed and then stayed the same for some frames.
REPAINTED = """() => new Promise(done => {
  const canvas = document.querySelector('[data-testid=crowd-canvas]');
  const real = CanvasRenderingContext2D.prototype.putImageData;
  const start = performance.now();
  let last = 0;
  CanvasRenderingContext2D.prototype.putImageData = function (...given) {
    real.apply(this, given);
    if (this.canvas === canvas) last = performance.now();
  };
  window.act();
  const next = () => {
    const over = last > 0 && performance.now() - last > 400;
    if (!over) return requestAnimationFrame(next);
    CanvasRenderingContext2D.prototype.putImageData = real;
    done(last - start);
  };
  requestAnimationFrame(next);
})"""
CHOOSE = """name => { window.act = () => {
  const select = document.querySelector('[data-testid=colour]');
  select.value = name;
  select.dispatchEvent(new Event('change', { bubbles: true }));
}; }"""

WHEEL = """([x, y]) => { window.act = () => document.querySelector('.aa-stage').dispatchEvent(
  new WheelEvent('wheel', { deltaY: -240, clientX: x, clientY: y, bubbles: true, cancelable: true })
); }"""


def measure_page(folder: Path, head: str) -> dict[str, Any]:
    """Open a head whose tokens are all placed; returns milliseconds and bytes."""
    with start([aa.open(folder)], port=0) as running, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=list(FLAGS))
        address = f"{running.url}#tab=map&mapHead={head}"
        first = [_open(browser.new_page(viewport=_SIZE), address) for _ in range(3)]
        page = browser.new_page(viewport=_SIZE)
        sizes: list[int] = []
        page.on("response", lambda answer: sizes.append(_size(answer)))
        _open(page, address)
        sent = sum(sizes)
        results: dict[str, Any] = {
            "sample on screen, first time ms": first[0][0],
            "all points on screen, first time ms": first[0][1],
            "sample on screen ms": statistics.median(at for at, _ in first[1:]),
            "all points on screen ms": statistics.median(at for _, at in first[1:]),
            "bytes until then": sent,
        }
        sizes.clear()
        results["first recolour ms"] = _recolour(page, "position")
        results["bytes of a colour"] = sum(sizes)
        _recolour(page, "mod5")
        names = ["position", "mod5"] * TIMES
        results["recolour ms"] = statistics.median(_recolour(page, name) for name in names)
        results["zoom to true points ms"] = _zoom(page)
        results["dots in view"] = page.get_by_test_id("crowd-canvas").get_attribute("data-dots")
        browser.close()
    return results


_SIZE: Any = {"width": 1440, "height": 900}


def _open(page: Page, address: str) -> tuple[float, float]:
    page.add_init_script(SEEN)
    began = time.perf_counter()
    page.goto(address)
    page.wait_for_selector("[data-testid=map-canvas][data-whole=true]", timeout=PATIENCE)
    sample = time.perf_counter() - began
    page.wait_for_selector(SHOWN, timeout=PATIENCE)
    return round(1000 * sample), round(1000 * (time.perf_counter() - began))


def _size(answer: Any) -> int:
    return int(answer.headers.get("content-length", 0))


def _recolour(page: Page, name: str) -> float:
    page.evaluate(CHOOSE, name)
    return round(float(page.evaluate(REPAINTED)))


def _zoom(page: Page) -> float:
    """Turn the wheel on one spot until points are single; returns the time of the last turn."""
    box = page.get_by_test_id("map-canvas").bounding_box()
    assert box is not None
    x, y = box["x"] + 0.31 * box["width"], box["y"] + 0.48 * box["height"]
    canvas = page.get_by_test_id("crowd-canvas")
    page.evaluate(WHEEL, [x, y])
    took = 0.0
    for _ in range(12):
        took = round(float(page.evaluate(REPAINTED)))
        if int(canvas.get_attribute("data-dots") or -1) >= 0:
            break
    return took
