"""Figures of every view: real letters and lines that stand on their own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from PIL import Image
from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.full

Open = Callable[..., Page]
SVG = "{http://www.w3.org/2000/svg}"
VIEWS = ["head", "model", "neuron", "heat"]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_each_view_is_a_figure_of_letters_and_lines(
    view: str, theme: str, open_page: Open, subjects: Any, browser: Browser, tmp_path: Path
) -> None:
    page = open_page("gpt", f"view={view}&heads=L3H4&theme={theme}")
    svg = page.evaluate("attentionAtlas.svg()")
    tree = ElementTree.fromstring(svg)
    texts = [one.text for one in tree.iter(f"{SVG}text")]
    if view == "model":
        assert texts[:6] == ["0", "1", "2", "3", "4", "5"]
    else:
        assert len(texts) >= 2 * len(subjects["gpt"].tokens(0))
        assert texts.count("The") == 2
    paths = [one.get("d") or "" for one in tree.iter(f"{SVG}path")]
    assert sum(path.count("M") for path in paths) > 10
    assert list(tree.iter(f"{SVG}image")) == []
    alone = browser.new_page()
    asked: list[str] = []
    alone.on("request", lambda request: asked.append(request.url))
    figure = tmp_path / "figure.svg"
    figure.write_text(svg, encoding="utf-8")
    alone.goto(figure.as_uri())
    assert asked == [figure.as_uri()]
    alone.close()


def test_markup_in_a_token_stays_text_in_a_figure(open_page: Open) -> None:
    svg = open_page("evil").evaluate("attentionAtlas.svg()")
    tree = ElementTree.fromstring(svg)
    texts = [one.text or "" for one in tree.iter(f"{SVG}text")]
    assert any(text.startswith("</script><img") for text in texts)
    assert list(tree.iter(f"{SVG}script")) == []


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_the_export_button_gives_a_file(kind: str, open_page: Open, tmp_path: Path) -> None:
    page = open_page("gpt", "heads=L3H4")
    page.get_by_test_id("export").click()
    with page.expect_download() as waiting:
        page.get_by_test_id(f"export-{kind}").click()
    download: Any = waiting.value
    assert download.suggested_filename == f"attention-head-L3H4.{kind}"
    path = tmp_path / download.suggested_filename
    download.save_as(path)
    if kind == "png":
        with Image.open(path) as picture:
            colours = picture.convert("RGB").resize((200, 200)).getcolors(40_000)
        assert len(colours or []) > 10
    else:
        assert path.read_text(encoding="utf-8").startswith("<svg")
