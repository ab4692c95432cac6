"""The documents as a site: all that it refers to is in it, and nothing comes from a network."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from docs.site.links import broken, loaded_from_elsewhere
from docs.site.live import PAGES
from docs.site.navigation import LAST, SECTIONS
from docs.site.notebooks import notebooks
from docs.site.reference import reference
from docs.site.source import ROOT, documents

MADE = {
    "docs/live.md",
    "docs/api.md",
    *(f"docs/notebooks/{path.stem}.md" for path in notebooks()),
}


def test_every_page_that_the_navigation_names_is_there() -> None:
    named = [path for section in (*SECTIONS.values(), LAST) for path in section.values()]
    assert len(set(named)) == len(named)
    assert set(named) - {str(path) for path in documents()} == MADE


def test_every_document_of_docs_has_its_place_in_the_navigation() -> None:
    named = {path for section in (*SECTIONS.values(), LAST) for path in section.values()}
    ours = {str(path) for path in documents() if path.parts[0] == "docs"}
    assert ours - named == set(), "name it in docs/site/navigation.py"


def test_live_pages_that_documents_ask_for_are_made() -> None:
    asked = {
        name
        for path in documents()
        for name in re.findall(r"<!-- live: (\S+) -->", (ROOT / path).read_text(encoding="utf-8"))
    }
    assert asked <= set(PAGES) and asked


def test_the_reference_has_every_public_name_and_what_it_says_of_itself() -> None:
    import attention_atlas as aa

    page = reference()
    assert [name for name in aa.__all__ if f"### aa.{name}\n" not in page] == []
    assert "Run a model over inputs and store its attention; returns the atlas." in page
    assert "#### atlas.weights" in page


def test_what_is_missing_in_a_site_is_found(tmp_path: Path) -> None:
    (tmp_path / "b.html").write_text('<h2 id="there">b</h2>')
    (tmp_path / "a.html").write_text(
        '<a href="b.html#there">1</a><a href="b.html#gone">2</a><a href="c.html">3</a>'
        '<img src="p.png"><a href="https://example.org">4</a>'
        '<script src="https://example.org/s.js"></script><a href="../x.html">5</a>'
    )
    assert broken(tmp_path) == [
        "a.html: b.html#gone has no such anchor",
        "a.html: c.html is not there",
        "a.html: ../x.html is not there",
        "a.html: p.png is not there",
    ]
    assert loaded_from_elsewhere(tmp_path) == [
        "a.html: https://example.org/s.js comes from a network"
    ]


@pytest.mark.full
def test_every_link_anchor_and_picture_of_the_built_site_is_there(site: Path) -> None:
    """The fixture builds it and is told what is broken; here that there is much to break."""
    pages = list(site.rglob("*.html"))
    assert len([page for page in pages if "live" not in page.parts]) >= 70
    assert len(list((site / "docs" / "gallery").glob("*.png"))) >= 150
    assert {path.stem for path in (site / "docs" / "live").glob("*.html")} == set(PAGES)
    assert broken(site) == [] and loaded_from_elsewhere(site) == []


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    opened = browser.new_page(viewport={"width": 1440, "height": 900})
    yield opened
    opened.close()


@pytest.mark.full
def test_the_site_opens_from_a_disk_with_live_pages_and_search_and_no_network(
    site: Path, page: Page
) -> None:
    asked: list[str] = []
    errors: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    for name in ("index.html", "docs/tour.html", "docs/notebooks/text.html", "docs/api.html"):
        page.goto((site / name).as_uri())
        assert page.locator("h1").first.is_visible()
    page.goto((site / "docs" / "live.html").as_uri())
    for index in range(len(PAGES)):
        frame = page.locator("iframe.live").nth(index)
        frame.scroll_into_view_if_needed()
        frame.content_frame.locator("html[data-state=ready]").wait_for(timeout=30_000)
    page.goto((site / "docs" / "glossary.html").as_uri())
    page.keyboard.press("Control+k")
    box = page.get_by_role("combobox", name="Search")
    box.wait_for(state="attached")
    box.fill("Kobayashi", force=True)
    page.get_by_text("The formulas").first.wait_for(state="attached", timeout=60_000)
    assert errors == []
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
