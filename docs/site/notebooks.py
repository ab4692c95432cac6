"""How do notebooks become pages of the site? They are run, and views become live pages."""

import base64
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docs.site.source import ROOT, frame

if TYPE_CHECKING:
    import nbformat

FOLDER = ROOT / "docs" / "notebooks"
PATIENCE = 300  # seconds for one cell

# Run before the first cell, when the notebook is run for the site: a view saves itself as a page.
_VIEWS_AS_PAGES = """
import itertools as _itertools

def _as_page(view, _numbers=_itertools.count(1)):
    name = f"live/{NOTEBOOK}-{next(_numbers)}.html"
    view.save(name)
    return f'<!-- page: {name} -->'

from attention_atlas import View as _View
get_ipython().display_formatter.formatters["text/html"].for_type(_View, _as_page)
"""


def notebooks() -> list[Path]:
    """List the notebooks of the documents."""
    return sorted(FOLDER.glob("*.ipynb"))


def execute(path: Path, folder: Path, pages: bool = True) -> "nbformat.NotebookNode":
    """Run a notebook whole, in a folder; returns it with its outputs.

    With `pages` every view that a cell shows is saved in `folder`/live. A cell that fails raises.
    """
    import nbformat  # it takes seconds, and most of the site's parts do without
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    if pages:
        (folder / "live").mkdir(parents=True, exist_ok=True)
        first = nbformat.v4.new_code_cell(f"NOTEBOOK = {path.stem!r}\n{_VIEWS_AS_PAGES}")
        notebook.cells.insert(0, first)
    client = NotebookClient(
        notebook, timeout=PATIENCE, kernel_name="python3", resources={"metadata": {"path": folder}},
        extra_arguments=["--IPKernelApp.log_level=40"],
    )  # fmt: skip
    client.execute()
    if pages:
        del notebook.cells[0]
    return notebook


def write_notebooks(folder: Path) -> None:
    """Run all notebooks and write each as a page into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in notebooks():
        with (
            tempfile.TemporaryDirectory() as place
        ):  # what it writes beside its pages is left there
            write_page(execute(path, Path(place)), path.stem, folder)
            shutil.copytree(Path(place) / "live", folder / "live", dirs_exist_ok=True)


def write_page(notebook: "nbformat.NotebookNode", name: str, folder: Path) -> None:
    """Write a notebook that was run as a document, with its pictures beside it."""
    parts: list[str] = []
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        for index, output in enumerate(cell.outputs):
            parts.append(_shown(output, f"{name}-{number}-{index}", folder))
    note = f"*This page is [{name}.ipynb]({name}.ipynb), run while the site was built.*"
    parts.insert(1, note)
    (folder / f"{name}.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    (folder / f"{name}.ipynb").write_bytes((FOLDER / f"{name}.ipynb").read_bytes())


def _shown(output: Any, name: str, folder: Path) -> str:
    """Return one output of a cell as Markdown; pictures are written as files."""
    if output.output_type == "stream":
        return f"```text\n{output.text.rstrip()}\n```"
    data = output.get("data", {})
    html = data.get("text/html", "")
    if html.startswith("<!-- page: "):
        address = html.removeprefix("<!-- page: ").removesuffix(" -->")
        return frame(address, name)
    if "image/svg+xml" in data:
        (folder / f"{name}.svg").write_text(data["image/svg+xml"], encoding="utf-8")
        return f"![{name}]({name}.svg)"
    if "image/png" in data:
        (folder / f"{name}.png").write_bytes(base64.b64decode(data["image/png"]))
        return f"![{name}]({name}.png)"
    if html:
        return f'<div class="output">{_one_block(html)}</div>'
    return f"```text\n{data.get('text/plain', '')}\n```"


def _one_block(html: str) -> str:
    """Take empty lines and indents out, which would end a block of HTML inside Markdown."""
    return "\n".join(line.strip() for line in html.splitlines() if line.strip())
