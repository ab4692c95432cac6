"""The commands that show things, as a person types them."""

import os
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

import attention_atlas as aa
from attention_atlas.cli.app import app
from attention_atlas.page.wire.packing import unpack

pytestmark = pytest.mark.usefixtures("stand_in")


def test_view_saves_a_page_and_prints_its_path(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = CliRunner().invoke(
        app, ["view", "builtin:bert", "The cat.", "The dog.", "--save", str(page)]
    )
    assert done.exit_code == 0, done.output
    assert str(page) in done.stdout and 'data-path="edges/0/' in page.read_text("utf-8")


@pytest.mark.full
def test_export_writes_a_page_or_a_folder(gpt: aa.Atlas, tmp_path: Path) -> None:
    for name in ("page.html", "site"):
        done = CliRunner().invoke(app, ["export", str(gpt.path), str(tmp_path / name)])
        assert done.exit_code == 0, done.output
    assert (tmp_path / "page.html").is_file()
    assert (tmp_path / "site" / "api" / "about").is_file()


@pytest.mark.full
def test_demo_still_prints_when_text_is_asked_for() -> None:
    done = CliRunner().invoke(app, ["demo", "--text"])
    assert done.exit_code == 0 and "The strongest link of each head" in done.stdout


def test_an_atlas_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    code = "from attention_atlas.cli.app import main; main()"
    command = [sys.executable, "-c", code, "serve", str(tmp_path / "no.atlas"), "--no-browser"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("attention-atlas: there is no atlas at")
    assert done.stderr.count("\n") == 1


def test_serve_answers_and_stops_at_ctrl_c(gpt: aa.Atlas) -> None:
    """In a process of its own; it needs the built page, so it runs where one is."""
    code = (
        "import sys; from pathlib import Path; from attention_atlas.page.hosts import static_files;"
        "static_files.STATIC = Path(sys.argv.pop(1));"
        "from attention_atlas.cli.app import main; main()"
    )
    from attention_atlas.page.hosts import static_files

    command = [sys.executable, "-c", code, str(static_files.STATIC), "serve", str(gpt.path)]
    process = subprocess.Popen(
        [*command, "--port", "0", "--no-browser"], stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    assert process.stderr is not None
    line = process.stderr.readline()
    url = next(word for word in line.split() if word.startswith("http://127.0.0.1:"))
    end = time.monotonic() + 120
    while True:
        try:
            answer = httpx.get(url + "api/about")
            break
        except httpx.TransportError:
            assert time.monotonic() < end
            time.sleep(0.1)
    assert unpack(answer.content)["model"] == "builtin:gpt"
    process.send_signal(2)
    assert process.wait(120) == 0
    process.stderr.close()


def test_importing_views_and_server_needs_no_torch() -> None:
    code = (
        "import sys; from attention_atlas.page.hosts import launch, views, widget;"
        "sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
