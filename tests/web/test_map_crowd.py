"""One head with more tokens than its map: placed on request, drawn by density, then as points."""

import base64
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from playwright.sync_api import Page, expect

import attention_atlas as aa
from attention_atlas.page.hosts.launch import start
from attention_atlas.store.all_places import all_places_path, read_all_places
from tests import planted
from tests.web import maps
from tests.web.maps import PATIENCE, ROOM, eventually, panel, settled

pytestmark = pytest.mark.full

HEAD = "L0H1"
Float = npt.NDArray[np.float64]
READ = """() => {
  const canvas = document.querySelector('[data-testid=crowd-canvas]');
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  let text = '';
  for (let at = 0; at < data.length; at += 8192)
    text += String.fromCharCode(...data.subarray(at, at + 8192));
  return [canvas.width, canvas.height, btoa(text)];
}"""


@pytest.fixture(scope="module")
def atlas(tmp_path_factory: pytest.TempPathFactory) -> aa.Atlas:
    """About 40,000 queries and keys a head, of which the map has 600."""
    texts = planted.sentences(600)
    path = tmp_path_factory.mktemp("crowd") / "x.atlas"
    atlas = planted.write(path, texts, *planted.vectors(texts))
    atlas.layout("pca", tokens=300, progress=False)
    return atlas


@pytest.fixture
def opened(page: Page, atlas: aa.Atlas) -> Iterator[Callable[[str], Page]]:
    with start([atlas], port=0) as running:

        def go(picks: str = "") -> Page:
            page.add_init_script(maps.SEEN)
            page.goto(f"{running.url}#tab=map&mapHead={HEAD}&{picks}")
            page.wait_for_selector("html[data-state=ready]", timeout=PATIENCE)
            settled(page)
            return page

        yield go


def all_spots(page: Page, atlas: aa.Atlas) -> Float:
    """Where all queries and keys of the head must be in the window: by the box of the sample."""
    layout = atlas.layout("pca", tokens=300)
    own = layout.of(HEAD)[0]
    stored = read_all_places(all_places_path(atlas.path / "layouts" / "pca-2d.safetensors", HEAD))
    places = stored.box[0] + stored.places / 65535 * (stored.box[1] - stored.box[0])
    low, high = own.min(0), own.max(0)
    left, top, side = panel(page, HEAD)
    local = 0.5 + ROOM * (places - (low + high) / 2) / (high - low).max() * np.array([1, -1])
    return np.asarray(np.array([left, top]) + side * local, np.float64)


def inside(page: Page, spots: Float) -> npt.NDArray[np.int64]:
    """Numbers of the points within the map's canvas."""
    box: Any = page.get_by_test_id("map-canvas").bounding_box()
    x, y = spots[:, 0] - box["x"], spots[:, 1] - box["y"]
    return np.flatnonzero((x >= 0) & (y >= 0) & (x < box["width"]) & (y < box["height"]))


def picture(page: Page) -> npt.NDArray[np.int64]:
    width, height, text = page.evaluate(READ)
    raw = np.frombuffer(base64.b64decode(text), np.uint8)
    return raw.reshape(height, width, 4)[..., :3].astype(np.int64)


def dots(page: Page) -> int:
    return int(page.get_by_test_id("crowd-canvas").get_attribute("data-dots") or -2)


def place_all(page: Page, atlas: aa.Atlas) -> None:
    if not (atlas.path / "layouts" / "pca-2d.all").exists():
        bar = page.get_by_test_id("crowd-bar")
        expect(bar).to_contain_text("a sample of 600 of")
        page.get_by_test_id("place-all").click()
    page.wait_for_selector("[data-testid=crowd-canvas]:not([hidden])", timeout=PATIENCE)
    settled(page)


def test_all_points_are_placed_on_request_and_drawn_by_density(
    opened: Callable[..., Page], atlas: aa.Atlas
) -> None:
    page = opened("labels=false")
    place_all(page, atlas)
    total = f"{2 * len(atlas.tokens()):,}"
    expect(page.get_by_test_id("crowd-bar")).to_contain_text(
        f"all {total} points, drawn by density"
    )
    assert dots(page) == -1
    # Every pixel with a point has ink, and none has that is not beside one.
    spots, box = all_spots(page, atlas), page.get_by_test_id("map-canvas").bounding_box()
    assert box is not None
    inked = (np.abs(picture(page) - maps.PAPER) > 3).any(2)
    columns, rows = np.floor(spots - [box["x"], box["y"]]).astype(int).T
    here = (columns >= 0) & (rows >= 0) & (columns < inked.shape[1]) & (rows < inked.shape[0])
    assert inked[rows[here], columns[here]].mean() > 0.98  # rounding moves a few by a pixel
    near = np.zeros_like(inked)
    for down in (-2, -1, 0, 1, 2):
        for across in (-2, -1, 0, 1, 2):
            near[np.clip(rows[here] + down, 0, len(near) - 1),
                 np.clip(columns[here] + across, 0, near.shape[1] - 1)] = True  # fmt: skip
    assert not (inked & ~near).any()


def zoom_in(page: Page, atlas: aa.Atlas) -> None:
    """Zoom in on the point that is nearest to the middle of all."""
    spots = all_spots(page, atlas)
    nearest = np.argmin(np.linalg.norm(spots - np.median(spots, 0), axis=1))
    page.mouse.move(*spots[nearest].tolist())
    for _ in range(5):
        page.mouse.wheel(0, -240)
    settled(page)
    eventually(page, lambda: dots(page) >= 0)


def test_zoomed_in_the_page_draws_as_many_points_as_numpy_counts(
    opened: Callable[..., Page], atlas: aa.Atlas
) -> None:
    page = opened("labels=false")
    place_all(page, atlas)
    zoom_in(page, atlas)
    spots = all_spots(page, atlas)
    # A point on the very edge may fall on either side by the rounding of the panel's box.
    edge = 0.1
    box: Any = page.get_by_test_id("map-canvas").bounding_box()
    inner = spots - [box["x"], box["y"]]
    far = inner - [box["width"], box["height"]]
    unsure = (np.minimum(np.abs(inner), np.abs(far)) < edge).any(1)
    assert abs(dots(page) - len(inside(page, spots))) <= unsure.sum()
    assert dots(page) > 0


def test_a_point_beyond_the_sample_is_named_and_picked(
    opened: Callable[..., Page], atlas: aa.Atlas
) -> None:
    page = opened("labels=false")
    place_all(page, atlas)
    zoom_in(page, atlas)
    spots = all_spots(page, atlas)
    here = inside(page, spots)
    box: Any = page.get_by_test_id("map-canvas").bounding_box()
    middle = np.array([box["x"] + box["width"] / 2, box["y"] + box["height"] / 2])
    for point in here[np.argsort(np.linalg.norm(spots[here] - middle, axis=1))]:
        away = np.linalg.norm(spots - spots[point], axis=1)
        if np.partition(away, 1)[1] > 2:  # no other point as near to the cursor
            break
    tokens = atlas.tokens()
    token, side = (point, "query") if point < len(tokens) else (point - len(tokens), "key")
    row = tokens.iloc[token]
    page.mouse.move(*spots[point].tolist())
    tip = page.get_by_test_id("point-tip")
    expect(tip).to_contain_text(f"{side} of token {row['position']}")
    page.mouse.click(*spots[point].tolist())
    eventually(page, lambda: maps.picks(page)["pinned"])
    picked = maps.picks(page)
    assert (picked["input"], picked["token"]) == (
        int(row["input"]), {"side": side, "position": int(row["position"])},
    )  # fmt: skip
