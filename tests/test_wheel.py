"""The wheel, installed where there is no Node, opens the demo and saves a page.

What is fresh: the environment, our package in it (from the wheel alone), the PATH (no Node), the
folder and the cache. What is not: torch, transformers and the other dependencies are those of the
environment that runs the tests, added by a .pth file without its links to this checkout; installing
them anew would fetch gigabytes and test nothing of ours.
"""

import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from tests.pythons import ROOT, VERSIONS, build_wheel, open_demo, person, run

MOST = 18_000_000  # bytes


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def commands(wheel: Path) -> Path:
    """The commands of a new environment that holds the wheel."""
    folder = wheel.parent
    venv.create(folder / "env", with_pip=True)
    commands = folder / "env" / "bin"
    (site,) = (folder / "env" / "lib").glob("python*/site-packages")
    # The path is added as it stands: .pth files inside it, our editable install among them, are
    # read for real site folders only.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    run(
        commands / "pip", "install", "--no-deps", "--no-index", "--disable-pip-version-check", wheel
    )
    return commands


@pytest.fixture
def alone(commands: Path, tmp_path: Path) -> dict[str, str]:
    """Variables of a person without Node, and without this checkout."""
    return person(commands, tmp_path)


@pytest.mark.full
def test_the_wheel_is_small_and_has_types_and_the_name_that_uvx_runs(wheel: Path) -> None:
    assert wheel.stat().st_size <= MOST
    with zipfile.ZipFile(wheel) as held:
        names = held.namelist()
        assert "attention_atlas/py.typed" in names
        (told,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        (points,) = (name for name in names if name.endswith("/entry_points.txt"))
        about, commands = held.read(told).decode(), held.read(points).decode()
    assert "Name: attention-atlas\n" in about and "Classifier: Typing :: Typed" in about
    assert "[console_scripts]\nattention-atlas = attention_atlas.cli:main" in commands


@pytest.mark.full
def test_the_package_is_that_of_the_wheel_and_there_is_no_node(
    commands: Path, alone: dict[str, str], tmp_path: Path
) -> None:
    code = "import attention_atlas, shutil; print(attention_atlas.__file__, shutil.which('node'))"
    place, node = run(commands / "python", "-c", code, env=alone, cwd=tmp_path).split()
    assert Path(place).is_relative_to(commands.parent) and node == "None"


@pytest.mark.full
def test_the_demo_opens_and_a_page_is_saved(
    commands: Path, alone: dict[str, str], tmp_path: Path
) -> None:
    open_demo(commands, alone, tmp_path)
    saved = tmp_path / "page.html"
    text = "The cat sat on the mat."
    asked = (commands / "attention-atlas", "view", "builtin:gpt", text, "--save", saved)
    run(*asked, env=alone, cwd=tmp_path)
    html = saved.read_text(encoding="utf-8")
    assert "data-path" in html and 'src="http' not in html


def test_the_pythons_that_are_promised_are_those_that_are_tried() -> None:
    about = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = [line.rpartition(" :: ")[2] for line in about["classifiers"] if ":: 3." in line]
    promised = [f"3.{part}" for part in range(11, 15)]
    assert list(VERSIONS) == promised == [n.removeprefix("3 :: ") for n in named]
    assert about["requires-python"] == ">=3.11"
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"version: {about['version']}\n" in cited and "license: Apache-2.0\n" in cited
