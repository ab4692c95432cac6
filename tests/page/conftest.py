"""Atlases made once, and a built page's stand-in where the page itself is not the question."""

from pathlib import Path

import pytest

import attention_atlas as aa
from attention_atlas.page.hosts import static_files
from tests import atlases
from tests.made_once import MadeOnce


@pytest.fixture(scope="session")
def gpt(made_once: MadeOnce) -> aa.Atlas:
    return aa.open(made_once("gpt", atlases.gpt) / "gpt.atlas")


@pytest.fixture(scope="session")
def bert(made_once: MadeOnce) -> aa.Atlas:
    return aa.open(made_once("bert", atlases.bert) / "bert.atlas")


@pytest.fixture(scope="session")
def seq2seq(made_once: MadeOnce) -> aa.Atlas:
    return aa.open(made_once("seq2seq", atlases.seq2seq) / "seq2seq.atlas")


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A static folder with the names of a built one, so that these tests need no build."""
    folder = tmp_path / "static"
    folder.mkdir()
    for name in ("page.html", "page.js", "page.css", "early.js", "widget.js"):
        (folder / name).write_text(f"/* {name} */", encoding="utf-8")
    (folder / "file.html").write_text(
        "<html>file.html<!--ATLAS-DATA--><!--ATLAS-MORE--></html>", encoding="utf-8"
    )
    monkeypatch.setattr(static_files, "STATIC", folder)
    return folder
