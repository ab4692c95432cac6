"""Every notebook of the documents runs from its first cell to its last."""

import json
from pathlib import Path

import pytest

from docs.site.notebooks import notebooks

NAMES = [path.stem for path in notebooks()]


def test_there_is_a_notebook_for_each_part() -> None:
    assert set(NAMES) == {"text", "maps", "vision", "heads", "lab", "scale"}


@pytest.mark.parametrize("path", notebooks(), ids=NAMES)
def test_notebooks_are_kept_without_outputs(path: Path) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert code and cells[0]["source"][0].startswith("# ")
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)


@pytest.mark.full
@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_runs_whole_and_shows_its_views(name: str, notebook_pages: Path) -> None:
    """A cell that fails would have stopped the run; each view was saved as a page of its own."""
    page = (notebook_pages / f"{name}.md").read_text(encoding="utf-8")
    views = 0 if name == "lab" else page.count("<iframe ")
    pages = sorted((notebook_pages / "live").glob(f"{name}-*.html"))
    assert len(pages) == views and (views or name == "lab")
    assert all(b"<html" in path.read_bytes()[:2000] for path in pages)
