"""The three hosts of the page: a server, a file with the network cut, a real JupyterLab."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, expect

import attention_atlas as aa
from attention_atlas.page.hosts.view_object import View
from tests.web.conftest import EVIL, PATIENCE, SIZE
from tests.web.maps import eventually, painted
from tests.web.notebooks import jupyter, notebook


def _saved(subject: Any, folder: Path, **options: Any) -> Path:
    view = aa.head_view(subject) if isinstance(subject, aa.Atlas) else View(subject, _first_picks())
    return view.save(folder / "page.html", **options)


def _first_picks() -> dict[str, Any]:
    return {"view": "head", "tower": "self", "layer": 0, "heads": ["L0H0"]}


# A file ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gpt", "bert", "seq2seq", "plain"])
def test_a_saved_page_works_with_the_network_cut_and_asks_for_nothing(
    name: str, browser: Browser, subjects: dict[str, Any], tmp_path: Path
) -> None:
    path = _saved(subjects[name], tmp_path)
    context = browser.new_context(viewport=SIZE, offline=True)
    page = context.new_page()
    asked: list[str] = []
    said: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda line: said.append(line.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-state=ready]", timeout=PATIENCE)
    page.get_by_test_id("query-0-2").click()
    expect(page.get_by_test_id("partners")).to_be_visible()
    for key in "2413":
        page.keyboard.press(key)
        painted(page)
    context.close()
    assert [url for url in asked if not url.startswith(("data:", "blob:"))] == [path.as_uri()]
    assert said == []


def test_a_large_saved_page_opens_on_one_layer_and_has_the_others_too(
    page: Page, tmp_path: Path
) -> None:
    draws = np.random.default_rng(0).dirichlet(np.full(90, 0.1), size=(6, 1, 12, 90))
    attention, tokens = list(draws.astype(np.float32)), [f"w{at}" for at in range(90)]
    path = aa.head_view(attention, tokens, layer=2).save(tmp_path / "page.html")
    text = path.read_text("utf-8")
    first, script, rest = (
        text.index(one) for one in ("edges/0/self/2", "<script>\n", 'edges/0/self"')
    )
    assert first < script < rest
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-state=ready]", timeout=PATIENCE)
    for layer in (2, 5):
        page.get_by_test_id("layer").select_option(str(layer))
        page.get_by_test_id("query-0-7").hover()
        said = page.locator("[data-testid^=key-0-][data-weight]")
        expect(said.first).to_be_visible()
        for one in said.all():
            at = int((one.get_attribute("data-testid") or "").rsplit("-", 1)[1])
            strongest = attention[layer][0, :, 7, at].max()
            assert float(one.get_attribute("data-weight") or 0) == pytest.approx(
                strongest, abs=2e-5
            )


@pytest.mark.full
@pytest.mark.parametrize("view", [aa.head_view, aa.model_view])
def test_a_view_is_painted_once_at_any_width(
    view: Callable[..., Any], browser: Browser, subjects: dict[str, Any], tmp_path: Path
) -> None:
    """Words below the thumbnails must not change the height above them: it would never end. And
    bars that are filled after the picture must be as high as they were.
    """
    path = view(subjects["gpt"]).save(tmp_path / "page.html")
    for width in (900, 1100, 1280, 1440):
        page = browser.new_page(viewport={"width": width, "height": 800})
        page.add_init_script(_COUNT)
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-state=ready]", timeout=PATIENCE)
        painted(page, frames=36)
        before = page.evaluate("window.__sized")
        painted(page, frames=36)
        assert page.evaluate("window.__sized") == before <= (3 if width < 1000 else 1), width
        page.close()


# How often a canvas is given a size, which a painting at another size begins with.
_COUNT = """
window.__sized = 0;
const own = Object.getOwnPropertyDescriptor(HTMLCanvasElement.prototype, "width");
Object.defineProperty(HTMLCanvasElement.prototype, "width", {
  get: own.get, set(value) { window.__sized++; own.set.call(this, value); } });
"""


@pytest.mark.full
def test_a_saved_neuron_view_opens_on_its_neurons(
    page: Page, subjects: dict[str, Any], tmp_path: Path
) -> None:
    path = aa.neuron_view(subjects["gpt"], layer=2, head=1).save(tmp_path / "page.html")
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-state=ready]", timeout=PATIENCE)
    assert page.evaluate("attentionAtlas.picks().view") == "neuron"
    assert page.evaluate("attentionAtlas.picks().heads") == ["L2H1"]


@pytest.mark.full
def test_a_static_folder_works_on_a_plain_web_server(
    page: Page, subjects: dict[str, Any], tmp_path: Path
) -> None:
    from functools import partial
    from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
    from threading import Thread

    from attention_atlas.page.hosts.export import save_folder

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

    save_folder(tmp_path / "site", subjects["gpt"])
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=tmp_path))
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        page.goto(f"http://127.0.0.1:{server.server_port}/site/")
        page.wait_for_selector("html[data-state=ready]", timeout=PATIENCE)
        page.keyboard.press("3")
        painted(page)
        assert page.get_by_role("alert").count() == 0
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


# A figure ----------------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.parametrize("view", ["head_view", "model_view", "neuron_view"])
def test_a_figure_is_vector_text_and_opens_on_its_own(
    view: str, page: Page, subjects: dict[str, Any], tmp_path: Path
) -> None:
    shown: dict[str, Any] = {
        "head_view": aa.head_view,
        "model_view": aa.model_view,
        "neuron_view": aa.neuron_view,
    }
    path = shown[view](subjects["gpt"]).save(tmp_path / "figure.svg")
    tree = ElementTree.parse(path)
    kinds = {element.tag.rpartition("}")[2] for element in tree.iter()}
    assert "text" in kinds and kinds & {"path", "line"} and not kinds & {"image", "foreignObject"}
    page.goto(path.as_uri())
    words = page.locator("text").all_text_contents()
    assert any("L" in one or "layer" in one for one in words)
    assert "traveller" in "".join(words).replace("·", "") or view == "model_view"


@pytest.mark.full
def test_a_png_is_the_same_figure(subjects: dict[str, Any], tmp_path: Path) -> None:
    view = aa.head_view(subjects["gpt"])
    svg = ElementTree.parse(view.save(tmp_path / "figure.svg")).getroot()
    with Image.open(view.save(tmp_path / "figure.png")) as picture:
        size = picture.size
    wide, high = float(svg.attrib["width"]), float(svg.attrib["height"])
    assert size == pytest.approx((2 * wide, 2 * high), abs=2)


# Tokens that would break out ---------------------------------------------------------------------


@pytest.mark.parametrize("host", ["served", "saved"])
@pytest.mark.parametrize("view", ["1", "2", "4"])
def test_a_token_with_markup_does_nothing_and_is_shown_as_text(
    host: str,
    view: str,
    page: Page,
    page_url: Callable[..., str],
    subjects: dict[str, Any],
    tmp_path: Path,
) -> None:
    page.on("dialog", lambda dialog: pytest.fail(f"a token opened {dialog.message}"))
    path = _saved(subjects["evil"], tmp_path) if host == "saved" else None
    page.goto(path.as_uri() if path else page_url("evil"))
    page.wait_for_selector("html[data-state=ready]", timeout=PATIENCE)
    expect(page.get_by_test_id("query-0-0")).to_contain_text("</script>")
    page.get_by_test_id("query-0-0").click()
    page.keyboard.press(view)
    painted(page)
    svg: str = page.evaluate("attentionAtlas.svg()")
    assert page.locator("img").count() == 0 and page.locator("b", has_text="bold").count() == 0
    assert page.title() != "owned"
    assert "<img" not in svg and "<script" not in svg.lower()
    assert EVIL.startswith("</script>")


# A notebook --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """A JupyterLab of its own, with nobody's settings."""
    folder = tmp_path_factory.mktemp("lab")
    with jupyter("jupyterlab", folder) as url:
        yield url, folder


def run_until(page: Page, cell: int, check: Callable[[], None]) -> None:
    """Runs a cell until it knows what was picked: a pick reaches the kernel a moment later."""

    def again() -> None:
        page.locator(".jp-Cell").nth(cell).locator(".cm-content").click()
        page.evaluate("void window.jupyterapp.commands.execute('notebook:run-cell')")
        check()

    eventually(page, again)


@pytest.mark.full
def test_the_widget_shows_at_first_twice_and_sends_a_pick_back(
    lab: tuple[str, Path], browser: Browser, subjects: dict[str, Any]
) -> None:
    url, folder = lab
    atlas = str(subjects["gpt"].path)
    (folder / "try.ipynb").write_text(
        notebook(
            f"import attention_atlas as aa\natlas = aa.open({atlas!r})\n"
            "first = aa.head_view(atlas, layer=2, heads=[1])\nfirst",
            "second = aa.model_view(atlas)\nsecond",
            "print('PICKED', first.picks['token'], first.picks['view'], second.picks['view'])",
        )
    )
    context = browser.new_context(viewport={"width": 1400, "height": 1600})
    page = context.new_page()
    page.goto(f"{url}/lab/tree/try.ipynb?reset")
    page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=60_000)
    expect(page.locator(".jp-StatusBar-Widget, #jp-main-statusbar")).to_contain_text(
        "| Idle", timeout=60_000
    )
    page.evaluate("void window.jupyterapp.commands.execute('notebook:run-all-cells')")
    outputs = page.locator(".jp-OutputArea-output")
    first = page.locator(".jp-Cell").nth(0).locator(".jp-OutputArea-output")
    second = page.locator(".jp-Cell").nth(1).locator(".jp-OutputArea-output")
    expect(first.get_by_test_id("head-panel")).to_be_visible(timeout=90_000)
    expect(second.get_by_test_id("model-panel")).to_be_visible(timeout=30_000)
    assert outputs.count() >= 3

    first.get_by_test_id("query-0-7").click()
    expect(first.get_by_test_id("key-0-1")).to_have_attribute("data-weight", re.compile(r"0\.\d+"))
    printed = page.locator(".jp-Cell").nth(2).locator(".jp-OutputArea-output")
    run_until(page, 2, lambda: expect(printed).to_contain_text("'position': 7", timeout=3_000))
    expect(printed).to_contain_text("head model")
    context.close()


@pytest.mark.full
def test_the_widget_shows_a_picture_and_sends_the_picked_patch_back(
    lab: tuple[str, Path], browser: Browser, tmp_path: Path
) -> None:
    url, folder = lab
    picture = folder / "flat.png"
    Image.new("RGB", (128, 128), (40, 90, 200)).save(picture)
    atlas = aa.capture("builtin:vit", [picture], path=tmp_path / "vit.atlas", progress=False)
    (folder / "see.ipynb").write_text(
        notebook(
            f"import attention_atlas as aa\natlas = aa.open({str(atlas.path)!r})\n"
            "view = aa.image_view(atlas, head='L2H1')\nview",
            "print('PICKED', view.picks['token'], view.picks['tab'])",
        )
    )
    context = browser.new_context(viewport={"width": 1400, "height": 1200})
    page = context.new_page()
    page.goto(f"{url}/lab/tree/see.ipynb?reset")
    page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=60_000)
    expect(page.locator(".jp-StatusBar-Widget, #jp-main-statusbar")).to_contain_text(
        "| Idle", timeout=60_000
    )
    page.evaluate("void window.jupyterapp.commands.execute('notebook:run-all-cells')")
    shown = page.locator(".jp-Cell").nth(0).locator("[data-testid=image-canvas][data-whole=true]")
    expect(shown).to_be_visible(timeout=90_000)
    box: Any = shown.bounding_box()
    # 8 × 8 patches on a square in the middle: just right of and below its middle is row 4, column 4
    page.mouse.click(box["x"] + box["width"] / 2 + 4, box["y"] + box["height"] / 2 + 4)
    printed = page.locator(".jp-Cell").nth(1).locator(".jp-OutputArea-output")
    # after the class token
    run_until(page, 1, lambda: expect(printed).to_contain_text("'position': 37", timeout=3_000))
    expect(printed).to_contain_text("image")
    context.close()
