"""Real models that see: patches on the map, the picture beside it, words and what they look at."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import transformers as hf
from PIL import Image
from playwright.sync_api import Browser, Page, expect

import attention_atlas as aa
from attention_atlas.page.hosts.launch import start
from attention_atlas.store.patch_places import SIDES
from tests.made_once import MadeOnce
from tests.record.seeing import local, stretched
from tests.record.test_patches import STAGES
from tests.record.test_placeholders import ask, llava, llava_next, qwen2
from tests.web import maps
from tests.web.conftest import PATIENCE, SIZE
from tests.web.pixels import Place, at, canvas, click, frames, hot, near
from tests.web.test_map_single import points

pytestmark = pytest.mark.full

Open = Callable[..., Page]
FLAT = (90, 90, 90)


def cells(seed: int) -> Image.Image:
    """8 × 8 cells of a colour each: what a patch of builtin:vit shows is one colour."""
    dice = np.random.default_rng(seed)
    colours = dice.integers(0, 256, (8, 8, 3), dtype=np.uint8)
    return Image.fromarray(colours.repeat(24, 0).repeat(24, 1))


@pytest.fixture(scope="session")
def seeing(made_once: MadeOnce) -> dict[str, aa.Atlas]:
    folder = made_once("seeing", _make_seeing)
    names = ("vit", "llava", "tiles", "qwen", "said", "swin")
    return {name: aa.open(folder / f"{name}.atlas") for name in names}


def _make_seeing(folder: Path) -> None:
    paths = []
    for seed in range(2):
        paths.append(folder / f"{seed}.png")
        cells(seed).save(paths[-1])
    made = aa.capture("builtin:vit", paths, path=folder / "vit.atlas", progress=False)
    made.layout("pca", progress=False)
    sizes = {
        "llava": (llava, (96, 64), 0),
        "tiles": (llava_next, (128, 64), 0),
        "qwen": (qwen2, (64, 48), 0),
        "said": (llava, (96, 64), 3),
    }
    for name, (make, size, generate) in sizes.items():
        model, processor = make()
        aa.capture(
            model, ask([Image.new("RGB", size, FLAT)]), tokenizer=processor, generate=generate,
            path=folder / f"{name}.atlas", progress=False,
        )  # fmt: skip
    windows = hf.SwinConfig(**{**STAGES, "image_size": (32, 32)})
    aa.capture(
        local(hf.AutoModel.from_config(windows)), [Image.new("RGB", (96, 96), FLAT)],
        tokenizer=stretched(32, 32), path=folder / "swin.atlas", progress=False,
    )  # fmt: skip


@pytest.fixture(scope="session")
def seeing_url(built: None, seeing: dict[str, aa.Atlas]) -> Iterator[Callable[[str], str]]:
    with start(list(seeing.values()), port=0) as running:
        places = {name: f"{running.url}{i}/" for i, name in enumerate(seeing)}
        yield lambda name: places[name]


@pytest.fixture
def open_seeing(page: Page, seeing_url: Callable[[str], str]) -> Open:
    def go(name: str, hash: str) -> Page:
        page.add_init_script(maps.SEEN)
        page.goto(f"{seeing_url(name)}#{hash}")
        page.wait_for_selector("html[data-state=ready]", timeout=PATIENCE)
        return page

    return go


# The map -----------------------------------------------------------------------------------------


def patch_points(atlas: aa.Atlas) -> list[tuple[int, int, tuple[int, int, int]]]:
    """Input, position and colour of each patch."""
    found = []
    for number in range(len(atlas)):
        colours = np.asarray(cells(number))[12::24, 12::24]
        for token in atlas.tokens(number).to_dict("records"):
            if token["row"] >= 0:
                red, green, blue = (int(x) for x in colours[token["row"], token["column"]])
                found.append((number, int(token["position"]), (red, green, blue)))
    return found


def test_points_of_patches_are_the_patches_themselves(
    open_seeing: Open, seeing: dict[str, aa.Atlas]
) -> None:
    page = open_seeing("vit", "tab=map&mapHead=L2H1&patches=border&labels=false")
    maps.settled(page)
    wanted = {colour for _, _, colour in patch_points(seeing["vit"])}

    def most_are_shown() -> bool:
        shown = maps.pixels(page).astype(int)  # JPEG-like sheets shift a little
        seen = [one for one in wanted if (np.abs(shown - one).max(2) <= 6).sum() >= 20]
        return len(seen) > 0.5 * len(wanted)

    maps.eventually(page, most_are_shown)
    shown = maps.pixels(page).astype(int)
    frame = sum((np.abs(shown - colour).max(2) <= 2).sum() for colour in (maps.GREEN, maps.PINK))
    assert frame > 1000
    page.get_by_test_id("patches-off").click()
    maps.settled(page)
    dots = maps.pixels(page).astype(int)
    left = {colour for colour in wanted if (np.abs(dots - colour).max(2) <= 6).sum() >= 20}
    assert len(left) < 0.1 * len(wanted)
    page.get_by_test_id("patches-fill").click()
    maps.settled(page)
    tinted = maps.pixels(page).astype(int)
    green = {
        colour
        for colour in wanted
        if (np.abs(tinted - (np.add(colour, maps.GREEN) / 2)).max(2) <= 6).sum() >= 20
    }
    assert len(green) > 0.3 * len(wanted)


def test_each_thumbnail_shows_its_own_patch(open_seeing: Open, seeing: dict[str, aa.Atlas]) -> None:
    page = open_seeing("vit", "tab=map&mapHead=L2H1&labels=false")
    maps.settled(page)
    spots, table = points(page, seeing["vit"], "L2H1")
    corner = maps.corner(page)
    colours = {(i, p): colour for i, p, colour in patch_points(seeing["vit"])}

    def each_is_its_own() -> None:
        shown = maps.pixels(page).astype(int)
        checked = 0
        for point in maps.alone(spots, 22):
            colour = colours.get((table["input"][point], table["position"][point]))
            if colour is None:
                continue
            x, y = (round(value) for value in spots[point] - corner)
            assert near(shown[y, x], colour, 8), (table.loc[point], shown[y, x], colour)
            checked += 1
        assert checked >= 5

    maps.eventually(page, each_is_its_own)


def test_a_clicked_point_opens_its_picture_with_what_it_looks_at(
    open_seeing: Open, seeing: dict[str, aa.Atlas]
) -> None:
    page = open_seeing("vit", "tab=map&mapHead=L2H1&labels=false")
    maps.settled(page)
    spots, table = points(page, seeing["vit"], "L2H1")
    point = next(int(i) for i in maps.alone(spots, 22) if table["row"][i] >= 0)
    row = table.loc[point]
    page.mouse.move(*spots[point].tolist())
    expect(page.get_by_test_id("patch-thumb")).to_be_visible()
    page.mouse.click(*spots[point].tolist())
    expect(page.locator("[data-testid=image-canvas][data-whole=true]")).to_be_visible()
    picked = maps.picks(page)
    assert picked["token"] == {"side": row["side"], "position": int(row["position"])}
    assert picked["input"] == int(row["input"])
    page.get_by_test_id("to-image").click()
    expect(page.get_by_test_id("image-token")).to_have_text(
        f"row {row['row']}, column {row['column']}"
    )


# The picture -------------------------------------------------------------------------------------


def boxes(atlas: aa.Atlas, stream: str, frame: tuple[int, int, int, int]) -> dict[int, Place]:
    """Position → where the patch must be on the canvas, within its picture's frame."""
    left, top, right, bottom = frame
    found = {}
    for token in atlas.tokens(0, stream).to_dict("records"):
        box = [float(token[side]) for side in SIDES]
        if token["image"] >= 0 and not np.isnan(box).any():
            inside = np.clip(box, 0, 1)
            found[int(token["position"])] = (
                left + inside[0] * (right - left), top + inside[1] * (bottom - top),
                left + inside[2] * (right - left), top + inside[3] * (bottom - top),
            )  # fmt: skip
    return found


def text_head(atlas: aa.Atlas) -> tuple[str, str]:
    """A head of the tower that reads the words, and its stream."""
    for tower in atlas.towers:
        if tower.layers[0].queries == "text":
            return f"{tower.name}.L1H1", "text"
    raise AssertionError("no tower reads words")


@pytest.mark.parametrize("name", ["llava", "qwen"])
def test_a_word_of_a_multimodal_model_lights_up_what_it_looks_at(
    name: str, open_seeing: Open, seeing: dict[str, aa.Atlas]
) -> None:
    atlas = seeing[name]
    head, stream = text_head(atlas)
    page = open_seeing(name, f"tab=image&heads={head}&arrows=false")
    places = boxes(atlas, stream, frames(canvas(page))[0])
    assert len(places) == {"llava": 16, "qwen": 48}[name]
    word = len(atlas.tokens(0, stream)) - 1  # "this"
    assert atlas.tokens(0, stream)["text"].iloc[word] == "this"
    page.get_by_test_id(f"beside-{word}").click()
    shown = canvas(page)
    weights = atlas.weights(0, head)
    best = max(places, key=lambda position: weights[word, position])
    assert near(at(shown, places[best], 0.5, 0.5), hot(FLAT))
    expect(page.get_by_test_id("image-most")).to_have_text(f"{weights[word, best]:.3f}")
    least = min(places, key=lambda position: weights[word, position])
    assert at(shown, places[least], 0.5, 0.5).sum() < at(shown, places[best], 0.5, 0.5).sum()


def test_a_word_that_the_model_wrote_shows_what_it_looked_at(
    open_seeing: Open, seeing: dict[str, aa.Atlas]
) -> None:
    atlas = seeing["said"]
    head, stream = text_head(atlas)
    page = open_seeing("said", f"tab=image&heads={head}&arrows=false")
    places = boxes(atlas, stream, frames(canvas(page))[0])
    word = len(atlas.tokens(0, stream)) - 2
    expect(page.get_by_test_id(f"beside-{word}")).to_have_class(re.compile("aa-generated"))
    page.get_by_test_id(f"beside-{word}").click()
    weights = atlas.weights(0, head)
    best = max(places, key=lambda position: weights[word, position])
    assert near(at(canvas(page), places[best], 0.5, 0.5), hot(FLAT))


@pytest.mark.parametrize("name", ["llava", "qwen"])
def test_a_patch_shows_which_words_look_at_it(
    name: str, open_seeing: Open, seeing: dict[str, aa.Atlas]
) -> None:
    atlas = seeing[name]
    head, stream = text_head(atlas)
    page = open_seeing(name, f"tab=image&heads={head}&arrows=false")
    places = boxes(atlas, stream, frames(canvas(page))[0])
    patch = sorted(places)[5]
    page.get_by_test_id("side-key").click()
    click(page, places[patch])
    page.mouse.move(2, 2)
    weights = atlas.weights(0, head)
    texts = atlas.tokens(0, stream)["text"].tolist()
    for word in range(len(texts) - 3, len(texts)):
        told = page.get_by_test_id(f"beside-{word}").locator(".aa-number").inner_text()
        value = float(weights[word, patch])
        assert told == ("<0.001" if 0 < value < 0.0005 else f"{value:.3f}")


def test_tiles_of_a_multimodal_model_lie_on_the_part_that_they_show(
    open_seeing: Open, seeing: dict[str, aa.Atlas]
) -> None:
    atlas = seeing["tiles"]
    head, stream = text_head(atlas)
    page = open_seeing("tiles", f"tab=image&heads={head}&arrows=false")
    copies = frames(canvas(page))
    assert len(copies) == 2  # whole, and in tiles
    tokens = atlas.tokens(0, stream)
    word = len(tokens) - 1
    page.get_by_test_id(f"beside-{word}").click()
    shown = canvas(page)
    weights = atlas.weights(0, head)[word]
    whole, tiled = (boxes(atlas, stream, frame) for frame in copies)
    best = max(whole, key=lambda position: weights[position])
    wide = {p: whole[p][2] - whole[p][0] for p in whole}
    large = wide[best] > 0.75 * max(wide.values())  # tiles are half as wide
    place = (whole if large else tiled)[best]
    assert near(at(shown, place, 0.5, 0.5), hot(FLAT))
    assert not near(at(shown, (tiled if large else whole)[best], 0.5, 0.5), hot(FLAT), 4)


def test_the_page_marks_what_the_server_marks(
    open_seeing: Open, seeing: dict[str, aa.Atlas]
) -> None:
    from attention_atlas.page.live.answers import Answers

    answers: Any = Answers(seeing["vit"])
    page = open_seeing("vit", "tab=image&heads=L2H1")
    signs = page.get_by_test_id("image-signs")
    for head in range(4):
        page.get_by_test_id(f"head-{head}").click()
        marks = answers.answer(f"gaze/0/encoder/2/{head}").mark
        for number, kind in enumerate(("arrow", "circle", "square"), start=1):
            expect(signs).to_have_attribute(f"data-{kind}", str(int((marks == number).sum())))


def test_a_picked_place_stays_where_windows_order_their_patches_otherwise(
    open_seeing: Open, seeing: dict[str, aa.Atlas]
) -> None:
    atlas = seeing["swin"]
    page = open_seeing("swin", "tab=image&heads=L0H0&arrows=false&overlay=false")
    frame = frames(canvas(page))[0]
    layers = atlas.towers[0].layers
    assert layers[0].queries != layers[1].queries
    before, after = (boxes(atlas, layers[i].queries, frame) for i in (0, 1))
    moved = next(
        p for p in before if not np.allclose(before[p], after.get(p, (0, 0, 0, 0)), atol=2)
    )
    click(page, before[moved])
    assert maps.picks(page)["token"]["position"] == moved
    page.keyboard.press("ArrowDown")
    page.wait_for_function("attentionAtlas.picks().layer === 1")
    maps.eventually(page, lambda: maps.picks(page)["token"]["position"] != moved)
    now = maps.picks(page)["token"]["position"]
    assert after[now] == pytest.approx(before[moved], abs=2)


# Hosts -------------------------------------------------------------------------------------------


def test_a_saved_picture_works_with_the_network_cut(
    browser: Browser, seeing: dict[str, aa.Atlas], tmp_path: Path
) -> None:
    view = aa.image_view(seeing["vit"], input=1, head="L2H1", patch=(3, 4))
    path = view.save(tmp_path / "page.html")
    context = browser.new_context(viewport=SIZE, offline=True)
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda line: said.append(line.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-state=ready]", timeout=PATIENCE)
    expect(page.locator("[data-testid=image-canvas][data-whole=true]")).to_be_visible()
    expect(page.get_by_test_id("image-token")).to_have_text("row 3, column 4")
    page.get_by_test_id("combine-rollout").click()
    expect(page.locator("[data-testid=image-canvas][data-whole=true]")).to_be_visible()
    page.keyboard.press("ArrowDown")
    maps.painted(page)
    assert page.get_by_role("alert").count() == 0
    context.close()
    assert said == []


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_a_figure_of_the_picture_is_saved_from_python(
    kind: str, seeing: dict[str, aa.Atlas], tmp_path: Path
) -> None:
    view = aa.image_view(seeing["vit"], input=0, head="L2H1", patch=(3, 4))
    path = view.save(tmp_path / f"figure.{kind}")
    if kind == "svg":
        assert "row 3, column 4 looks at" in path.read_text(encoding="utf-8")
    else:
        with Image.open(path) as picture:
            assert len(picture.convert("RGB").getcolors(1 << 20) or []) > 30
