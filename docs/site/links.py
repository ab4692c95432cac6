"""Is all that a built site refers to inside it? Links, anchors, pictures, scripts, frames."""

from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What a browser fetches by itself, and the attributes that name it; links are only followed.
_FETCHED = {
    "audio": ("src",), "embed": ("src",), "iframe": ("src",), "img": ("src", "srcset"),
    "link": ("href",), "object": ("data",), "script": ("src",), "source": ("src", "srcset"),
    "video": ("src", "poster"),
}  # fmt: skip
_NOT_FETCHED = {"canonical", "next", "prev", "author", "license"}  # kinds of <link> that only tell


class _Page(HTMLParser):
    """The addresses and anchors of one page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "link" and set(given.get("rel", "").split()) & _NOT_FETCHED:
            return
        for name in _FETCHED.get(tag, ()):
            if name in given:
                self.fetched += [part.split()[0] for part in given[name].split(",") if part.strip()]


@cache
def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def _pages(site: Path) -> Iterator[tuple[Path, _Page]]:
    """Read the pages of the site itself; live pages are of one file each, tested elsewhere."""
    for path in sorted(site.rglob("*.html")):
        if "live" not in path.relative_to(site).parts and path.name != "404.html":
            yield path, _read(path)


def broken(site: Path) -> list[str]:
    """Find addresses inside the site that lead nowhere; returns a sentence each."""
    site = site.resolve()
    found = []
    for path, page in _pages(site):
        for address in [*page.links, *page.fetched]:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            where = path.relative_to(site)
            if not target.is_relative_to(site) or not target.is_file():
                found.append(f"{where}: {address} is not there")
            elif target.suffix == ".html" and not _has(target, unquote(parts.fragment)):
                found.append(f"{where}: {address} has no such anchor")
    return found


def _has(page: Path, anchor: str) -> bool:
    return not anchor or anchor in _read(page).anchors


def loaded_from_elsewhere(site: Path) -> list[str]:
    """Find what a browser would fetch from a network to show a page; returns a sentence each."""
    site = site.resolve()
    return [
        f"{path.relative_to(site)}: {address} comes from a network"
        for path, page in _pages(site)
        for address in page.fetched
        if urlsplit(address).netloc
    ]
