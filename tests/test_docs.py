"""The documents say what is true."""

import re
from pathlib import Path

import pytest

from docs.command_line import PAGE, page

ROOT = Path(__file__).parents[1]


def test_the_command_line_page_is_what_the_commands_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m docs.command_line"


DOCUMENTS = [
    str(path.relative_to(ROOT))
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")]
]


@pytest.mark.parametrize("name", sorted(DOCUMENTS))
def test_links_between_documents_lead_somewhere(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)#]+)", text) if "://" not in link]
    assert [link for link in links if not ((ROOT / name).parent / link).exists()] == []


def test_the_built_in_models_weigh_at_most_12_mb() -> None:
    folder = ROOT / "src" / "attention_atlas" / "models" / "builtin"
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) <= 12_000_000
