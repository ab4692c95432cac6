"""What tests of pictures share: where a picture is on its canvas, and what colour is there."""

import io
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image
from playwright.sync_api import Page

from tests.web.maps import PAPER, painted

Pixels = npt.NDArray[np.int64]
Place = tuple[float, float, float, float]  # left, top, right, bottom


def pale(colour: tuple[int, int, int]) -> npt.NDArray[np.float64]:
    """Below the heat the colours of a picture are three fifths towards grey."""
    grey = 0.3 * colour[0] + 0.59 * colour[1] + 0.11 * colour[2]
    return 0.4 * np.array(colour) + 0.6 * grey


def hot(colour: tuple[int, int, int]) -> npt.NDArray[np.float64]:
    """A patch of this colour that has the largest weight: pale yellow, 62 % opaque."""
    return np.asarray(0.62 * np.array([252, 255, 164]) + 0.38 * pale(colour))


def cold(colour: tuple[int, int, int]) -> npt.NDArray[np.float64]:
    """And one that has none: dark violet, half opaque."""
    return np.asarray(0.5 * np.array([27, 12, 66]) + 0.5 * pale(colour))


def canvas(page: Page) -> Pixels:
    """What the picture's canvas shows, with the mouse away from it."""
    page.mouse.move(2, 2)
    painted(page)
    shot = page.get_by_test_id("image-canvas").screenshot()
    return np.asarray(Image.open(io.BytesIO(shot)).convert("RGB"), np.int64)


def runs(flags: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(int), [0]])))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def frames(picture: Pixels) -> list[tuple[int, int, int, int]]:
    """Left, top, right, bottom of each picture on the canvas, found by what is not paper."""
    inked = np.abs(picture - PAPER).max(2) > 4
    return [
        (left, top, right, bottom)
        for top, bottom in runs(inked.any(1))
        for left, right in runs(inked[top:bottom].any(0))
    ]


def click(page: Page, place: Place) -> None:
    box: Any = page.get_by_test_id("image-canvas").bounding_box()
    x, y = (place[0] + place[2]) / 2, (place[1] + place[3]) / 2
    page.mouse.click(box["x"] + x, box["y"] + y)


def at(picture: Pixels, place: Place, x: float, y: float) -> Pixels:
    """The pixel at a share of a patch's box."""
    left, top, right, bottom = place
    return np.asarray(picture[int(top + y * (bottom - top)), int(left + x * (right - left))])


def near(pixel: Pixels, wanted: Any, off: float = 14) -> bool:
    return bool(np.abs(pixel - wanted).max() <= off)
