"""Atlases made once, and a built page's stand-in where the page itself is not the question."""

from pathlib import Path

import pytest

import attention_atlas as aa
from attention_atlas.page.hosts import static_files
from tests import atlases


@pytest.fixture(scope="session")
def gpt(tmp_path_factory: pytest.TempPathFactory) -> aa.Atlas:
    return atlases.gpt(tmp_path_factory.mktemp("atlases"))


@pytest.fixture(scope="session")
def bert(tmp_path_factory: pytest.TempPathFactory) -> aa.Atlas:
    return atlases.bert(tmp_path_factory.mktemp("atlases"))


@pytest.fixture(scope="session")
def seq2seq(tmp_path_factory: pytest.TempPathFactory) -> aa.Atlas:
    return atlases.seq2seq(tmp_path_factory.mktemp("atlases"))


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A static folder with the names of a built one, so that these tests need no build."""
    folder = tmp_path / "static"
    folder.mkdir()
    for name in ("page.html", "page.js", "page.css", "widget.js"):
        (folder / name).write_text(f"/* {name} */", encoding="utf-8")
    (folder / "file.html").write_text(
        "<html><!--ATLAS-DATA--><!--ATLAS-MORE--></html>", encoding="utf-8"
    )
    monkeypatch.setattr(static_files, "STATIC", folder)
    return folder
