"""What is the site made of? The documents of the repository, copied to the paths that they have.

Links between documents then lead where they lead in the repository. `<!-- live: NAME -->` in a
document becomes a live page in a frame; elsewhere, as on a code host, nothing is seen of it.
Links to notebooks lead to the pages that are made of them.
"""

import re
import shutil
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("docs", "benchmarks", "training")
PICTURES = (".png", ".svg", ".webp", ".gif")
# Cards of the built-in models are filled in when a model is trained.
_TEMPLATES = {f"training/cards/{name}.md" for name in ("bert", "gpt", "vit")}
_NOTEBOOK = re.compile(r"(\]\([^)]*notebooks/\w+)\.ipynb\)")
_LIVE = re.compile(r"^<!-- live: ([a-z-]+) -->$", re.MULTILINE)


def documents() -> list[Path]:
    """List all documents of the repository, below its root."""
    found = [*ROOT.glob("*.md")]
    for folder in FOLDERS:
        found += (ROOT / folder).rglob("*.md")
    below = (path.relative_to(ROOT) for path in found)
    return sorted(path for path in below if str(path) not in _TEMPLATES)


def copy_documents(folder: Path) -> None:
    """Copy all documents and pictures into a folder, live pages framed."""
    for path in documents():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(_for_the_site(path), encoding="utf-8")
    for name in FOLDERS:
        for picture in (ROOT / name).rglob("*"):
            if picture.suffix in PICTURES:
                target = folder / picture.relative_to(ROOT)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(picture, target)
    for name in ("style.css", "worker.js"):
        shutil.copy(Path(__file__).parent / name, folder / name)


def _for_the_site(path: Path) -> str:
    """Return a document with live pages in frames and links to notebooks as links to pages."""
    up = "../" * (len(path.parts) - 1)

    def framed(found: re.Match[str]) -> str:
        return frame(f"{up}docs/live/{found[1]}.html", found[1])

    text = (ROOT / path).read_text(encoding="utf-8")
    return _LIVE.sub(framed, _NOTEBOOK.sub(r"\1.md)", text))


def frame(address: str, title: str) -> str:
    """Return a page in a frame, with a link that opens it alone."""
    return (
        f'<iframe class="live" src="{address}" title="{title}" loading="lazy"></iframe>\n'
        f'<p class="live-link"><a href="{address}">open this page alone</a></p>\n'
    )


def title_of(text: str) -> str:
    """Return the first heading of a document."""
    headings = (line for line in text.splitlines() if line.startswith("# "))
    return next(headings, "# Untitled").removeprefix("# ")
