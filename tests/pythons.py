"""Installs the wheel under every Python that is here, and opens the demo: python -m tests.pythons.

Each Python (3.11 to 3.14) gets a fresh environment with all dependencies, so it takes minutes and
some gigabytes of disk: it is no part of the tests (`make pythons`). Pythons are those on the PATH
and those of pyenv. A Python that is not here is named.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx

from attention_atlas.page.wire.packing import unpack

ROOT = Path(__file__).parents[1]
VERSIONS = ("3.11", "3.12", "3.13", "3.14")


def run(*command: str | Path, **options: Any) -> str:
    """Run a command to its end; returns what it printed."""
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=1800, **options
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return str(done.stdout)


def build_wheel(folder: Path) -> Path:
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=ROOT)
    (wheel,) = folder.glob("*.whl")
    return wheel


def person(commands: Path, home: Path) -> dict[str, str]:
    """Variables of a person without Node, and without this checkout."""
    return {
        "PATH": str(commands), "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache"),
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"), "HF_HUB_OFFLINE": "1",
    }  # fmt: skip


def open_demo(commands: Path, variables: dict[str, str], folder: Path) -> dict[str, Any]:
    """Start the demo as a person does and fetch its page; returns what the page is told first."""
    command = [str(commands / "attention-atlas"), "demo", "--no-browser", "--port", "0"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdout=pipe, stderr=subprocess.STDOUT, text=True, env=variables, cwd=folder
    ) as demo:
        try:
            assert demo.stdout is not None
            told = []
            for line in demo.stdout:
                told.append(line)
                if line.startswith("open "):
                    break
            assert told and told[-1].startswith("open "), "".join(told)[-3000:]
            url = told[-1].split()[1]
            page = httpx.get(url, timeout=120)
            assert page.status_code == 200 and "<script" in page.text
            assert len(httpx.get(url + "page.js", timeout=120).content) > 100_000
            about = unpack(httpx.get(url + "api/about", timeout=120).content)
            assert about["model"].startswith("builtin:") and about["maps"]
            return dict(about)
        finally:
            demo.kill()


def find_python(version: str) -> str | None:
    """Return a Python of this version on the PATH or of pyenv, None if there is none."""
    home = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    places = [*sorted(home.glob(f"{version}.*/bin/python"), reverse=True)]
    found = shutil.which(f"python{version}")
    for place in [*map(str, places), *([found] if found else [])]:
        said = subprocess.run([place, "--version"], capture_output=True, text=True)
        if said.returncode == 0 and said.stdout.startswith(f"Python {version}."):
            return place
    return None


def main(versions: tuple[str, ...] = VERSIONS) -> None:
    with tempfile.TemporaryDirectory(prefix="pythons-") as place:
        wheel = build_wheel(Path(place))
        print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB", flush=True)
        for version in versions:
            python = find_python(version)
            print(f"{version}: {try_python(python, wheel) if python else 'not here'}", flush=True)


def try_python(python: str, wheel: Path) -> str:
    """Install the wheel and all it needs in a fresh environment of a Python and open the demo."""
    with tempfile.TemporaryDirectory(prefix="python-") as place:
        folder, start = Path(place), time.monotonic()
        run(python, "-m", "venv", folder / "env")
        commands = folder / "env" / "bin"
        pip = (commands / "pip", "install", "--disable-pip-version-check", "--quiet")
        run(*pip, "--upgrade", "pip")  # an older one takes long to find versions that fit
        run(*pip, "-c", ROOT / "constraints.txt", wheel)
        installed = time.monotonic()
        about = open_demo(commands, person(commands, folder), folder)
        end = time.monotonic()
        return (
            f"installed in {installed - start:.0f} s, demo open after {end - installed:.0f} s "
            f"({about['model']}, {len(about['inputs'])} inputs; {about['receipt_line']})"
        )


if __name__ == "__main__":
    main(tuple(sys.argv[1:]) or VERSIONS)
