"""How does the site come about? Documents, reference, live pages and notebooks, then Zensical."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from docs.site.links import broken, loaded_from_elsewhere
from docs.site.live import write_live_pages
from docs.site.navigation import navigation
from docs.site.notebooks import write_notebooks
from docs.site.reference import write_reference
from docs.site.source import copy_documents, title_of

# The builder's one address on a network, for which worker.js stands in.
_ELSEWHERE = re.compile(r'<script src="https://unpkg\.com/iframe-worker/shim"[^>]*></script>')
_SETTINGS = """
[project]
site_name = "Attention Atlas"
site_description = "See, measure and test what attention does inside any transformer."
copyright = "Apache License 2.0"
docs_dir = "source"
site_dir = "site"
use_directory_urls = false
extra_css = ["style.css"]
nav = {nav}

[project.theme]
font = false
language = "en"
features = ["content.code.copy", "navigation.sections", "navigation.footer", "navigation.top"]

[[project.theme.palette]]
media = "(prefers-color-scheme: light)"
scheme = "default"
toggle.icon = "lucide/sun"
toggle.name = "Switch to dark mode"

[[project.theme.palette]]
media = "(prefers-color-scheme: dark)"
scheme = "slate"
toggle.icon = "lucide/moon"
toggle.name = "Switch to light mode"

[project.plugins.offline]

[project.markdown_extensions]
attr_list = {{}}
md_in_html = {{}}
tables = {{}}
toc.permalink = true
pymdownx.highlight.pygments_lang_class = true
pymdownx.superfences = {{}}
"""


def build(target: Path, notebooks: Callable[[Path], None] = write_notebooks) -> list[str]:
    """Build the site into a folder; returns what is broken in it, a sentence each."""
    with tempfile.TemporaryDirectory() as place:
        source = Path(place) / "source"
        copy_documents(source)
        write_reference(source / "docs" / "api.md")
        write_live_pages(source / "docs" / "live")
        notebooks(source / "docs" / "notebooks")
        _configure(Path(place))
        ended = _run_builder(Path(place))
        if ended.returncode:
            return [*ended.stderr.splitlines(), *ended.stdout.splitlines(), "Zensical stopped"]
        site = Path(place) / "site"
        _stay_offline(site)
        shutil.rmtree(target, ignore_errors=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(site, target)
    return [*broken(target), *loaded_from_elsewhere(target)]


def _configure(place: Path) -> None:
    """Write the builder's settings, with the navigation."""
    source = place / "source"
    pages = {
        str(path.relative_to(source)): title_of(path.read_text(encoding="utf-8"))
        for path in sorted(source.rglob("*.md"))
    }
    text = _SETTINGS.format(nav=_toml(navigation(pages)))
    (place / "zensical.toml").write_text(text, encoding="utf-8")


def _toml(value: object) -> str:
    """Write texts, lists and tables as inline TOML."""
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)


def _run_builder(place: Path) -> subprocess.CompletedProcess[str]:
    """Run Zensical strictly: a link or anchor that leads nowhere stops it."""
    return subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict"],
        cwd=place, capture_output=True, text=True, check=False,
        env={**os.environ, "NO_COLOR": "1"},
    )  # fmt: skip


def _stay_offline(site: Path) -> None:
    """Put our stand-in for workers in the place of the one that would be fetched."""
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        up = "../" * (len(page.relative_to(site).parts) - 1)
        text, count = _ELSEWHERE.subn(f'<script src="{up}worker.js"></script>', text)
        if count:
            page.write_text(text, encoding="utf-8")
