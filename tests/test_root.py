"""Only what belongs there lies in the root of the repository."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NAMES = {
    ".ci", ".gitignore", "AGENTS.md", "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE",
    "Makefile", "README.md", "SECURITY.md", "benchmarks", "constraints.txt", "docs",
    "hatch_build.py", "llms.txt",
    "pyproject.toml", "src", "tests", "training", "web",
}  # fmt: skip


def test_the_root_holds_these_names_and_no_others() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout: nothing says which files belong to the repository")
    listed = subprocess.run(
        ["git", "ls-files"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert {path.partition("/")[0] for path in listed.stdout.splitlines()} == NAMES
