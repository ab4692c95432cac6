"""The wheel, installed where there is no Node, opens the demo and saves a page.

What is fresh: the environment, our package in it (from the wheel alone), the PATH (no Node), the
folder and the cache. What is not: torch, transformers and the other dependencies are those of the
environment that runs the tests, added by a .pth file without its links to this checkout; installing
them anew would fetch gigabytes and test nothing of ours.
"""

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import httpx
import pytest

from attention_atlas.page.wire.packing import unpack

ROOT = Path(__file__).parents[1]


def run(*command: str | Path, **options: object) -> str:
    done = subprocess.run(  # type: ignore[call-overload]
        [str(part) for part in command], capture_output=True, text=True, timeout=540, **options
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return str(done.stdout)


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The commands of a new environment that holds the wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=ROOT)
    (wheel,) = folder.glob("*.whl")
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
    return {
        "PATH": str(commands), "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"), "HF_HUB_OFFLINE": "1",
    }  # fmt: skip


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
    command = [str(commands / "attention-atlas"), "demo", "--no-browser", "--port", "0"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdout=pipe, stderr=subprocess.STDOUT, text=True, env=alone, cwd=tmp_path
    ) as demo:
        try:
            assert demo.stdout is not None
            url = next(line.split()[1] for line in demo.stdout if line.startswith("open "))
            page = httpx.get(url, timeout=120)
            assert page.status_code == 200 and "<script" in page.text
            assert len(httpx.get(url + "page.js", timeout=120).content) > 100_000
            about = unpack(httpx.get(url + "api/about", timeout=120).content)
            assert about["model"].startswith("builtin:") and about["maps"]
        finally:
            demo.kill()
    saved = tmp_path / "page.html"
    text = "The cat sat on the mat."
    asked = (commands / "attention-atlas", "view", "builtin:gpt", text, "--save", saved)
    run(*asked, env=alone, cwd=tmp_path)
    html = saved.read_text(encoding="utf-8")
    assert "data-path" in html and 'src="http' not in html
