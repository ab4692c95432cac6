"""The front end is built when its sources changed, and only then."""

from pathlib import Path
from typing import Any

import pytest

import hatch_build


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, list[str]]:
    """A checkout whose npm only takes notes and leaves the built names behind."""
    (tmp_path / "web" / "src").mkdir(parents=True)
    (tmp_path / "web" / "package.json").write_text("{}")
    (tmp_path / "web" / "package-lock.json").write_text("{}")
    (tmp_path / "web" / "src" / "page.ts").write_text("one")
    asked: list[str] = []

    def npm(web: Path, *arguments: str) -> None:
        asked.append(arguments[0])
        static = web.parent / hatch_build.STATIC
        static.mkdir(parents=True, exist_ok=True)
        for name in hatch_build.BUILT:
            (static / name).write_text("built")

    monkeypatch.setattr(hatch_build, "npm", npm)
    return tmp_path, asked


def test_it_is_built_once_and_again_after_a_change(
    checkout: tuple[Path, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    root, asked = checkout
    hatch_build.build(root)
    hatch_build.build(root)
    assert asked == ["install", "run"]
    assert "fits web/; nothing to build" in capsys.readouterr().err
    (root / "web" / "src" / "page.ts").write_text("two")
    hatch_build.build(root)
    assert asked == ["install", "run", "install", "run"]


def test_what_only_checks_the_sources_builds_nothing(checkout: tuple[Path, list[str]]) -> None:
    root, asked = checkout
    hatch_build.build(root)
    for name in ("eslint.config.js", ".prettierrc.json", ".prettierignore", "README.md"):
        (root / "web" / name).write_text("rules")
    hatch_build.build(root)
    assert asked == ["install", "run"]


def test_a_missing_file_is_built_again(checkout: tuple[Path, list[str]]) -> None:
    root, asked = checkout
    hatch_build.build(root)
    (root / hatch_build.STATIC / "widget.js").unlink()
    hatch_build.build(root)
    assert asked.count("run") == 2


def test_a_build_that_leaves_something_out_fails(
    checkout: tuple[Path, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hatch_build, "npm", lambda *_: None)
    (checkout[0] / hatch_build.STATIC).mkdir(parents=True)
    with pytest.raises(SystemExit, match=r"left out page\.html"):
        hatch_build.build(checkout[0])


def test_without_sources_a_built_page_is_enough(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="take a whole checkout"):
        hatch_build.build(tmp_path)
    (tmp_path / hatch_build.STATIC).mkdir(parents=True)
    for name in hatch_build.BUILT:
        (tmp_path / hatch_build.STATIC / name).write_text("built")
    hatch_build.build(tmp_path)


def test_the_hook_puts_the_built_files_into_the_wheel(
    checkout: tuple[Path, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = hatch_build.FrontEnd.__new__(hatch_build.FrontEnd)
    monkeypatch.setattr(type(hook), "root", property(lambda _: str(checkout[0])), raising=False)
    data: dict[str, Any] = {"artifacts": []}
    hook.initialize("standard", data)
    assert data["artifacts"] == ["/src/attention_atlas/page/static/**"]
    assert checkout[1] == ["install", "run"]
