"""The Image tab on planted attention: the right patch lights up, whatever the grid."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from tests.web import pictures
from tests.web.maps import PAPER, SEEN, eventually
from tests.web.pictures import BLUE, WHOLE, Scene
from tests.web.pixels import Pixels, Place, at, canvas, click, cold, frames, hot, near

pytestmark = pytest.mark.full

Open = Callable[..., Page]
PATIENCE = 20_000
QUARTERS = [(0.0, 0.0, 0.5, 0.5), (0.5, 0.0, 1.0, 0.5), (0.0, 0.5, 0.5, 1.0), (0.5, 0.5, 1.0, 1.0)]

SCENES = {
    "7x7": Scene([(224, 224)], [(0, 7, 7, WHOLE)]),
    "14x14": Scene([(640, 480)], [(0, 14, 14, (0.125, 0.0, 0.875, 1.0))], ("[CLS]", "[REG1]")),
    "wide": Scene([(900, 300)], [(0, 4, 9, WHOLE)], before=()),
    "tiled": Scene(
        [(400, 400)], [(0, 3, 3, WHOLE), *((0, 3, 3, part) for part in QUARTERS)], before=("<s>",)
    ),
    "two": Scene([(300, 200), (200, 300)], [(0, 2, 3, WHOLE), (1, 3, 2, WHOLE)]),
    "words": Scene([(300, 300)], [(0, 3, 3, WHOLE)], ("<s>", "Look"), ("What", "is", "this", "?")),
    "none": Scene([], []),
}
HOT, COLD = hot(BLUE), cold(BLUE)
GREEN, PINK = np.array([0x5F, 0xB9, 0x6C]), np.array([0xE3, 0x37, 0x8F])


@pytest.fixture
def open_scene(built: None, page: Page) -> Open:
    def go(name: str, hash: str = "") -> Page:
        page.add_init_script(SEEN)
        pictures.serve(page, SCENES[name])
        page.goto(f"{pictures.HOME}#tab=image&{hash}")
        page.wait_for_selector("html[data-state=ready]", timeout=PATIENCE)
        return page

    return go


def spot(
    scene: Scene, all_frames: list[tuple[int, int, int, int]], patch: int, cover: int = 0
) -> Place:
    """Where a patch must be on the canvas: its box within its picture's frame."""
    _, (left, top, right, bottom), _, _ = scene.places()[patch]
    x0, y0, x1, y1 = all_frames[cover]
    wide, high = x1 - x0, y1 - y0
    return x0 + left * wide, y0 + top * high, x0 + right * wide, y0 + bottom * high


def cover_of(scene: Scene, name: str, patch: int) -> int:
    """Which copy of a picture a patch is drawn on."""
    if name == "tiled":
        return int(patch >= 9)
    return scene.places()[patch][0]


@pytest.mark.parametrize(
    ("name", "patch"),
    [("7x7", 0), ("7x7", 24), ("7x7", 48), ("14x14", 13), ("14x14", 100), ("wide", 8),
     ("wide", 17), ("tiled", 4), ("tiled", 8), ("tiled", 20), ("tiled", 44), ("two", 2),
     ("two", 5), ("two", 11)],
)  # fmt: skip
def test_the_heat_sits_on_the_patch_that_is_looked_at(
    name: str, patch: int, open_scene: Open
) -> None:
    scene = SCENES[name]
    page = open_scene(name, "arrows=false")
    there = frames(canvas(page))
    places = [spot(scene, there, i, cover_of(scene, name, i)) for i in range(len(scene.places()))]
    click(page, places[patch])
    shown = canvas(page)
    target = (patch + 1) % len(places)
    for i, place in enumerate(places):
        wanted = HOT if i == target else COLD
        for x, y in ((0.5, 0.5), (0.25, 0.25), (0.75, 0.75)):
            assert near(at(shown, place, x, y), wanted), (i, at(shown, place, x, y), wanted)


@pytest.mark.parametrize("name", ["7x7", "14x14", "wide"])
def test_as_a_key_the_heat_sits_on_the_patch_that_looks(name: str, open_scene: Open) -> None:
    scene = SCENES[name]
    page = open_scene(name, "arrows=false")
    there = frames(canvas(page))
    places = [spot(scene, there, i) for i in range(len(scene.places()))]
    page.get_by_test_id("side-key").click()
    click(page, places[10])
    shown = canvas(page)
    lit = [i for i, place in enumerate(places) if near(at(shown, place, 0.5, 0.5), HOT)]
    assert lit == [9]
    expect(page.get_by_test_id("image-most")).to_have_text("0.900" if scene.before else "1.000")


def test_several_patches_light_up_what_they_look_at_together(open_scene: Open) -> None:
    scene = SCENES["7x7"]
    page = open_scene("7x7", "arrows=false")
    there = frames(canvas(page))
    places = [spot(scene, there, i) for i in range(len(scene.places()))]
    click(page, places[10])
    page.keyboard.down("Control")
    click(page, places[30])
    page.keyboard.up("Control")
    shown = canvas(page)
    lit = [i for i, place in enumerate(places) if near(at(shown, place, 0.5, 0.5), HOT)]
    assert lit == [11, 31]  # each patch looks at the next one
    expect(page.get_by_test_id("image-most")).to_have_text("0.450")
    page.get_by_test_id("together-sum").click()
    expect(page.get_by_test_id("image-most")).to_have_text("0.900")


@pytest.mark.parametrize(("side", "colour"), [("query", GREEN), ("key", PINK)])
def test_the_border_of_the_picked_patch_says_which_side_it_is(
    side: str, colour: Pixels, open_scene: Open
) -> None:
    page = open_scene("7x7", "arrows=false&overlay=false")
    there = frames(canvas(page))
    place = spot(SCENES["7x7"], there, 24)
    click(page, place)
    if side == "key":
        page.keyboard.press("k")
    shown = canvas(page)
    left, top, right, bottom = (round(edge) for edge in place)
    middle = ((top + bottom) // 2, (left + right) // 2)
    for y, x in ((top, middle[1]), (bottom, middle[1]), (middle[0], left), (middle[0], right)):
        close = shown[y - 1 : y + 2, x - 1 : x + 2].reshape(-1, 3)
        assert any(near(pixel, colour, 6) for pixel in close), (y, x, close)
    assert near(shown[middle], BLUE, 3)


COUNTS = {
    "L0H0": (49, 0, 0),  # each looks at the next
    "L0H1": (0, 49, 0),  # at itself
    "L0H2": (0, 0, 49),  # at the class token
    "L0H3": (48, 1, 0),  # at its mirror image; the one in the middle is its own
}


@pytest.mark.parametrize(("head", "wanted"), COUNTS.items())
def test_strongest_looks_are_arrows_circles_and_squares(
    head: str, wanted: tuple[int, int, int], open_scene: Open
) -> None:
    page = open_scene("7x7", f"heads={head}")
    signs = page.get_by_test_id("image-signs")
    for kind, count in zip(("arrow", "circle", "square"), wanted, strict=True):
        expect(signs).to_have_attribute(f"data-{kind}", str(count))
    drawn = ElementTree.fromstring(page.evaluate("attentionAtlas.svg()"))
    circles = drawn.findall(".//{http://www.w3.org/2000/svg}circle")
    assert len(circles) == 2 * wanted[1]  # a rim and a line each


def test_an_arrow_runs_between_the_middles_of_two_patches(open_scene: Open) -> None:
    page = open_scene("7x7", "heads=L0H0&overlay=false")
    there = frames(canvas(page))
    scene = SCENES["7x7"]
    first, second = (spot(scene, there, i) for i in (8, 9))
    shown = canvas(page)
    y = round((first[1] + first[3]) / 2)
    for x in (first[2] - 8, second[0] + 8):  # on the line, on both sides of the edge between them
        assert shown[y - 2 : y + 3, round(x)].min(1).max() > 225
    assert near(at(shown, first, 0.5, 0.2), BLUE, 3)


def test_flows_are_all_weights_above_the_slider_and_undo_takes_it_back(open_scene: Open) -> None:
    page = open_scene("7x7", "heads=L0H0")
    page.get_by_test_id("arrows-all").click()
    signs = page.get_by_test_id("image-signs")
    expect(signs).to_have_attribute("data-arrow", "49")
    # 0.1 to the class token, up to rounding to 65535ths: just above the threshold of 0.1
    expect(signs).to_have_attribute("data-square", "49")
    page.get_by_test_id("flows-from").fill("70")  # 0.49
    expect(signs).to_have_attribute("data-square", "0")
    expect(signs).to_have_attribute("data-arrow", "49")
    page.get_by_test_id("undo").click()
    expect(signs).to_have_attribute("data-square", "49")
    page.get_by_test_id("redo").click()
    expect(signs).to_have_attribute("data-square", "0")
    eventually(page, lambda: "flowsFrom=0.49" in page.url)
    page.reload()
    expect(page.get_by_test_id("image-signs")).to_have_attribute("data-square", "0")


def test_heads_and_layers_are_stepped_through_with_the_arrow_keys(open_scene: Open) -> None:
    page = open_scene("7x7", "heads=L0H0")
    there = frames(canvas(page))
    click(page, spot(SCENES["7x7"], there, 24))
    signs = page.get_by_test_id("image-signs")
    expect(signs).to_have_attribute("data-arrow", "1")
    page.keyboard.press("ArrowRight")
    expect(signs).to_have_attribute("data-circle", "1")
    page.keyboard.press("ArrowDown")
    page.wait_for_function("attentionAtlas.picks().heads[0] === 'L1H1'")
    expect(signs).to_have_attribute("data-square", "1")
    expect(page.get_by_test_id("image-token")).to_have_text("row 3, column 3")
    page.keyboard.press("Shift+ArrowRight")
    expect(page.get_by_test_id("image-token")).to_have_text("row 3, column 4")
    page.mouse.move(2, 2)
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("image-token")).to_have_count(0)


def test_mean_and_rollout_are_what_the_server_says(open_scene: Open) -> None:
    page = open_scene("7x7", "arrows=false")
    there = frames(canvas(page))
    places = [spot(SCENES["7x7"], there, i) for i in range(49)]
    click(page, places[10])
    page.get_by_test_id("combine-mean").click()
    expect(page.get_by_test_id("image-most")).to_have_text("0.250")
    shown = canvas(page)
    # next 0.225, itself 0.25, mirror 0.25
    lit = [i for i, place in enumerate(places) if near(at(shown, place, 0.5, 0.5), HOT, 40)]
    assert lit == [10, 11, 38]
    page.get_by_test_id("combine-rollout").click()
    expect(page.get_by_test_id("inspector")).to_contain_text("rollout")
    shown = canvas(page)
    assert [i for i, place in enumerate(places) if near(at(shown, place, 0.5, 0.5), HOT)] == [38]


def test_numbers_are_read_by_pointing(open_scene: Open) -> None:
    page = open_scene("7x7", "arrows=false")
    there = frames(canvas(page))
    scene = SCENES["7x7"]
    box: Any = page.get_by_test_id("image-canvas").bounding_box()

    def point(patch: int) -> None:
        left, top, right, bottom = spot(scene, there, patch)
        page.mouse.move(box["x"] + (left + right) / 2, box["y"] + (top + bottom) / 2)

    point(3)
    tip = page.get_by_test_id("patch-tip")
    expect(tip).to_contain_text("row 0, column 3")
    expect(tip).to_contain_text("looks most at row 0, column 4 0.900")
    click(page, spot(scene, there, 3))
    point(4)
    expect(tip).to_contain_text("looked at by row 0, column 3 0.900")
    expect(page.get_by_test_id("beside-0")).to_contain_text("[CLS]0.100")
    expect(page.get_by_test_id("partner-5")).to_contain_text("row 0, column 4")


def test_class_tokens_stand_beside_and_can_be_picked_and_hidden(open_scene: Open) -> None:
    page = open_scene("14x14", "heads=L0H2")
    signs = page.get_by_test_id("image-signs")
    expect(signs).to_have_attribute("data-square", "196")
    expect(page.get_by_test_id("beside-1")).to_have_text("[REG1]")
    page.get_by_test_id("side-key").click()
    page.get_by_test_id("beside-0").click()
    page.mouse.move(2, 2)
    expect(page.get_by_test_id("image-most")).to_have_text("1.000")
    expect(signs).to_have_attribute("data-square", "196")
    page.get_by_test_id("beside-0").click()
    page.get_by_test_id("head-0").click()
    page.get_by_test_id("hide-special").click()
    page.get_by_test_id("side-query").click()
    there = frames(canvas(page))
    click(page, spot(SCENES["14x14"], there, 3))
    expect(page.get_by_test_id("image-most")).to_have_text("1.000")  # 0.9 of what is left


def test_a_word_shows_what_it_looks_at_and_a_patch_who_looks_at_it(open_scene: Open) -> None:
    scene = SCENES["words"]
    page = open_scene("words", "arrows=false")
    there = frames(canvas(page))
    places = [spot(scene, there, i) for i in range(9)]
    page.get_by_test_id("beside-12").click()  # "is", the second word after 2 + 9 tokens
    shown = canvas(page)
    lit = [i for i, place in enumerate(places) if near(at(shown, place, 0.5, 0.5), HOT)]
    assert lit == [1]
    expect(page.get_by_test_id("image-most")).to_have_text("0.600")
    page.get_by_test_id("side-key").click()
    click(page, places[2])
    expect(page.get_by_test_id("beside-13")).to_contain_text("this0.600")
    expect(page.get_by_test_id("beside-12")).to_contain_text("is0.000")


def test_two_pictures_stand_side_by_side_or_one_alone(open_scene: Open) -> None:
    page = open_scene("two", "arrows=false")
    assert len(frames(canvas(page))) == 2
    page.get_by_test_id("picture-1").click()
    eventually(page, lambda: len(frames(canvas(page))) == 1)
    [(left, top, right, bottom)] = frames(canvas(page))
    assert (right - left) / (bottom - top) == pytest.approx(200 / 300, abs=0.02)


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_the_picture_is_exported_with_what_lies_on_it(
    kind: str, open_scene: Open, tmp_path: Path
) -> None:
    page = open_scene("7x7", "heads=L0H0")
    click(page, spot(SCENES["7x7"], frames(canvas(page)), 24))
    page.get_by_test_id("export").click()
    with page.expect_download() as waiting:
        page.get_by_test_id(f"export-{kind}").click()
    download: Any = waiting.value
    assert download.suggested_filename == f"attention-image-L0H0.{kind}"
    path = tmp_path / download.suggested_filename
    download.save_as(path)
    if kind == "png":
        pixels = np.asarray(Image.open(path).convert("RGB"), np.int64)
        lit = np.abs(pixels - HOT).max(2) <= 14
        assert 1 / 80 < lit.sum() / (np.abs(pixels - PAPER).max(2) > 4).sum() < 1 / 40  # one of 49
    else:
        tree = ElementTree.fromstring(path.read_text(encoding="utf-8"))
        images = tree.findall(".//{http://www.w3.org/2000/svg}image")
        assert [str(one.get("href"))[:15] for one in images] == ["data:image/png;"]
        assert "row 3, column 3 looks at" in path.read_text(encoding="utf-8")


def test_an_atlas_without_pictures_says_what_to_do(open_scene: Open) -> None:
    page = open_scene("none")
    expect(page.get_by_test_id("sorry")).to_contain_text("This atlas has no pictures; capture a")
    expect(page.get_by_test_id("tab-image")).to_have_count(0)
