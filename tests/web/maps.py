"""What tests of the map share: where points must be on screen, and what colour is there."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from playwright.sync_api import Page

PATIENCE = 20_000
ROOM = 0.95  # share of a panel's side that a flat map takes
PAPER = (252, 252, 253)
GREEN, PINK = (0x5F, 0xB9, 0x6C), (0xE3, 0x37, 0x8F)

# The hints of a first visit would lie over the map; pages without an address have no storage.
SEEN = "try { localStorage.setItem('attention-atlas-hints', 'seen') } catch {}"
READ = """() => {
  const canvas = document.querySelector('[data-testid=map-canvas]');
  const gl = canvas.getContext('webgl2'), size = [canvas.width, canvas.height];
  const bytes = new Uint8Array(size[0] * size[1] * 4);
  gl.readPixels(0, 0, size[0], size[1], gl.RGBA, gl.UNSIGNED_BYTE, bytes);
  let text = '';
  for (let at = 0; at < bytes.length; at += 8192)
    text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return [size, btoa(text)];
}"""

# Panels stand where the camera has them; `frames` in a row without a change, and all is drawn.
RESTING = 12
RESTS = """frames => new Promise(done => {
  const canvas = () => document.querySelector('[data-testid=map-canvas]');
  const panels = () => [...document.querySelectorAll('[data-testid^=panel-]')];
  const seen = () => JSON.stringify(panels().map(one => one.getBoundingClientRect()));
  let before = '', left = frames;
  const next = () => {
    const now = seen();
    left = now === before && canvas()?.dataset.whole === 'true' ? left - 1 : frames;
    before = now;
    return left > 0 ? requestAnimationFrame(next) : done();
  };
  next();
})"""


def picks(page: Page) -> dict[str, Any]:
    found: dict[str, Any] = page.evaluate("attentionAtlas.picks()")
    return found


def eventually(page: Page, check: Callable[[], object]) -> None:
    """The check must come true, however busy the machine is; what it says last is what fails."""
    end = time.monotonic() + PATIENCE / 1000
    while True:
        try:
            result = check()
            assert result is None or result
            return
        except AssertionError:
            if time.monotonic() > end:
                raise
        page.wait_for_timeout(50)


def painted(page: Page, frames: int = 3) -> None:
    """Until what was asked for is on the screen: three frames of the page's own, however slow."""
    page.evaluate(
        """frames => new Promise(done => {
          let left = frames;
          const next = () => (left-- ? requestAnimationFrame(next) : done());
          next();
        })""",
        frames,
    )


def settled(page: Page) -> None:
    """Until every point is drawn and no panel has moved for as long as a step of the camera is."""
    page.wait_for_selector("[data-testid=map-canvas][data-whole=true]", timeout=PATIENCE)
    page.evaluate(RESTS, RESTING)


def addressed(page: Page, before: str) -> None:
    """Until the address is another one than before."""
    eventually(page, lambda: page.url != before)


def pixels(page: Page) -> npt.NDArray[np.uint8]:
    """(height, width, 3) of the points' own canvas, top row first."""
    import base64

    (width, height), text = page.evaluate(READ)
    raw = np.frombuffer(base64.b64decode(text), np.uint8)
    return raw.reshape(height, width, 4)[::-1, :, :3].copy()


def inked(picture: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    return np.asarray(np.any(np.abs(picture.astype(int) - PAPER) > 6, axis=2))


def corner(page: Page) -> tuple[float, float]:
    box = page.get_by_test_id("map-canvas").bounding_box()
    assert box is not None
    return box["x"], box["y"]


def panel(page: Page, head: str) -> tuple[float, float, float]:
    """Left, top and side of a head's plot in the window: the square in the middle of its panel."""
    box = page.get_by_test_id(f"panel-{head}").bounding_box()
    assert box is not None
    side = min(box["width"], box["height"])
    left, top = box["x"] + (box["width"] - side) / 2, box["y"] + (box["height"] - side) / 2
    return left, top, side


def spots(page: Page, head: str, places: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Where points (N + M, 2) of a map's own units must be in the window: equal aspect, centred."""
    low, high = places.min(0), places.max(0)
    middle, longest = (low + high) / 2, float((high - low).max())
    left, top, side = panel(page, head)
    local = 0.5 + ROOM * (places - middle) / longest * np.array([1, -1])
    return np.asarray(np.array([left, top]) + side * local, np.float64)


def alone(places: npt.NDArray[np.float64], apart: float = 12) -> npt.NDArray[np.int64]:
    """Numbers of the points that no other comes near to."""
    away = np.linalg.norm(places[:, None] - places[None], axis=2)
    np.fill_diagonal(away, np.inf)
    return np.flatnonzero(away.min(1) > apart)


def enter(page: Page, head: str) -> None:
    left, top, side = panel(page, head)
    page.mouse.click(left + side / 2, top + side / 2)
    settled(page)
