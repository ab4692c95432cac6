"""A real Chromium, the built page, and a server of a few atlases."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page

import attention_atlas as aa
import hatch_build
from attention_atlas.page.hosts.launch import start
from tests import atlases, planted
from tests.made_once import MadeOnce, locked
from tests.map_figures import write_figures
from tests.places import minilm
from tests.web import maps

ROOT = Path(__file__).parents[2]
SIZE: Any = {"width": 1280, "height": 860}
EVIL = "</script><img src=x onerror=\"document.title='owned'\">"
PATIENCE = 30_000


@pytest.fixture(scope="session", autouse=True)
def built() -> None:
    """web/ is built once, whichever worker comes first."""
    lock = ROOT / ".cache" / "web.lock"
    lock.parent.mkdir(exist_ok=True)
    with locked(lock):
        hatch_build.build(ROOT)


@pytest.fixture(scope="session")
def subjects(made_once: MadeOnce) -> dict[str, Any]:
    """gpt; bert (its input 1 is a pair); seq2seq; plain attention; evil tokens; no vectors."""

    def atlas(make: Callable[[Path], aa.Atlas]) -> aa.Atlas:
        name = make.__name__
        return aa.open(made_once(name, make) / f"{name}.atlas")

    gpt = atlas(atlases.gpt)
    n = len(gpt.tokens(0))
    words = gpt.tokens(0)["text"].tolist()
    layers = [gpt.layer_weights(0, layer)[None] for layer in range(6)]
    evil = aa.head_view(layers, [EVIL, *words[1 : n - 1], "<b>bold</b>"]).subject
    return {
        "gpt": gpt,
        "bert": atlas(atlases.bert),
        "seq2seq": atlas(atlases.seq2seq),
        "plain": aa.head_view(layers, words).subject,
        "evil": evil,
        "bare": atlas(atlases.bare),
    }


TEXTS = [
    atlases.SENTENCE,
    "The cat sat on the mat and the dog lay on the rug.",
    "She said that the letter would arrive on Monday, not on Tuesday.",
    "The doctor asked the nurse a question, but she was not sure.",
]


# One head of each grade; of the others nothing is known.
TOLD = {
    "L0H0": {
        "chance": 0.2, "to_special": 0.1, "full.visible": -0.95, "full.correlation": -0.9,
        "map.strongest": 0.94, "map.visible": -0.7, "map.overlap": 0.8, "map.like": 0.97,
        "pca.strongest": 0.4, "pca.visible": -0.2, "shuffled.strongest": 0.21,
        "shuffled.visible": 0.01, "map.correlation": -0.5,
    },
    "L0H1": {"chance": 0.23, "map.strongest": 0.61, "map.visible": -0.4, "to_special": 0.9},
    "L0H2": {"chance": 0.24, "map.strongest": 0.31, "map.visible": -0.2},
}  # fmt: skip


@pytest.fixture(scope="session")
def mapped(made_once: MadeOnce) -> dict[str, aa.Atlas]:
    """Atlases with maps: two built-in models, MiniLM, and heads that we planted."""
    folder = made_once("maps", _make_maps)
    names = ("gpt-map", "bert-map", "minilm-map", "planted", "told")
    return {name: aa.open(folder / name) for name in names}


def _make_maps(folder: Path) -> None:
    models = {"gpt": "builtin:gpt", "bert": "builtin:bert", "minilm": minilm()}
    for name, model in models.items():
        atlas = aa.capture(model, TEXTS, path=folder / f"{name}-map", progress=False)
        atlas.layout("pca", progress=False)
        atlas.layout("pca", dims=3, progress=False)
    atlas = planted.planted(folder / "planted", 12)
    atlas.layout("pca", progress=False)
    atlas.layout("umap", progress=False)
    atlas = planted.planted(folder / "told", 6)
    atlas.layout("pca", progress=False)
    write_figures(atlas.path / "layouts" / "pca-2d.safetensors", TOLD)


@pytest.fixture(scope="session")
def map_url(built: None, mapped: dict[str, aa.Atlas]) -> Iterator[Callable[..., str]]:
    with start(list(mapped.values()), port=0) as running:
        places = {name: f"{running.url}{i}/" for i, name in enumerate(mapped)}
        yield lambda name, picks="": places[name] + (f"#{picks}" if picks else "")


@pytest.fixture
def open_map(page: Page, map_url: Callable[..., str]) -> Callable[..., Page]:
    """Go to an atlas's maps and wait until every point is there."""

    def go(name: str, hash: str = "") -> Page:
        page.add_init_script(maps.SEEN)
        page.goto(map_url(name, hash))
        page.wait_for_selector("html[data-state=ready]", timeout=PATIENCE)
        maps.settled(page)
        return page

    return go


@pytest.fixture(scope="session")
def page_url(built: None, subjects: dict[str, Any]) -> Iterator[Callable[..., str]]:
    """The address of a subject by its name; "pair" is the pair of bert."""
    with start(list(subjects.values()), port=0) as running:
        places = {name: f"{running.url}{i}/" for i, name in enumerate(subjects)}

        def address(name: str, hash: str = "") -> str:
            if name == "pair":
                return address("bert", f"input=1&{hash}".rstrip("&"))
            return places[name] + (f"#{hash}" if hash else "")

        yield address


def _is_trouble(line: ConsoleMessage) -> bool:
    """Chromium tells of every answer that is no answer; two of them are meant to be so.

    What was given up ends in a 409, and a page may ask for its place in the queue of a server that
    the test has just stopped.
    """
    meant = ("409 (Conflict)", "ERR_CONNECTION_REFUSED")
    return line.type == "error" and not any(words in line.text for words in meant)


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A fresh page that must not say anything on its console by the end."""
    context = browser.new_context(viewport=SIZE)
    opened = context.new_page()
    said: list[str] = []
    opened.on("pageerror", lambda error: said.append(str(error)))
    opened.on("console", lambda line: said.append(line.text) if _is_trouble(line) else None)
    yield opened
    context.close()
    assert said == []


@pytest.fixture
def open_page(page: Page, page_url: Callable[..., str]) -> Callable[..., Page]:
    """Go to a subject's page and wait for its first full frame."""

    def go(name: str, hash: str = "") -> Page:
        page.goto(page_url(name, hash))
        page.wait_for_selector("html[data-state=ready]", timeout=PATIENCE)
        return page

    return go
