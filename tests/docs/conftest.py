"""The notebooks that were run, and the site that was built, once for all workers."""

import shutil
from pathlib import Path

import pytest

from docs.site.build import build
from docs.site.notebooks import write_notebooks
from tests.made_once import MadeOnce


@pytest.fixture(scope="session")
def notebook_pages(made_once: MadeOnce) -> Path:
    """Every notebook run whole, as pages."""
    return made_once("notebooks", write_notebooks)


@pytest.fixture(scope="session")
def site(made_once: MadeOnce, notebook_pages: Path) -> Path:
    """The built site, as `make site` builds it."""

    def make(folder: Path) -> None:
        def copied(target: Path) -> None:
            shutil.copytree(notebook_pages, target, dirs_exist_ok=True)

        assert build(folder / "site", notebooks=copied) == []

    return made_once("site", make) / "site"
