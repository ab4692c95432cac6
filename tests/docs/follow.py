"""How is a line of a document run as a reader would run it?"""

import sys
import urllib.request
from collections.abc import Sequence
from typing import Any

import pytest

from attention_atlas.cli.app import main
from attention_atlas.page.hosts import launch
from tests.docs.blocks import Block, commands

# A command that begins so, or has such a word → why it is not run here.
NOT_RUN = {
    "make": "demo, test and site are run by people; their parts have tests of their own",
    "pip": "installs; tests/test_wheel.py installs the wheel",
    "uvx": "installs from a registry",
    "uv": "installs from a registry",
    "python": "makes documents anew",
    "--engine": "starts a Ray cluster, which takes a minute; tests/engine has one of its own",
    "--bits": "bitsandbytes needs a GPU for its kernels; tests/models/test_large.py",
}
# A block of Python with such a text → why it is not run here.
PYTHON_NOT_RUN = {
    'engine="ray"': "starts a Ray cluster, which takes a minute; tests/engine has one of its own",
    'aa.ray.Cluster("auto"': "needs a Ray cluster; tests/engine has one of its own",
    "s3://": "needs a store of objects and a GPU; tests/engine/test_ray_data.py has the same call",
    "METHODS = {": "a line of a table; tests/layout/test_adding.py adds this very method",
}


def run_python(block: Block, names: dict[str, Any]) -> None:
    """Run a block; errors tell the line of the document."""
    code = "\n" * (block.line - 1) + block.code
    exec(compile(code, block.document, "exec"), names)


def run_shell(block: Block, allowed: Sequence[int] = (0,)) -> int:
    """Run the commands of ours in a block; returns how many were run."""
    count = 0
    for words in commands(block.code):
        if set(words) & set(NOT_RUN):
            continue
        assert words[0] == "attention-atlas", f"{block}: {words[0]} is no command of ours"
        ended = run_command(words)
        assert ended in allowed, f"{block}: {' '.join(words)} ended with {ended}"
        count += 1
    return count


def run_command(words: list[str]) -> int:
    """Run one command in this process; a server answers one request and stops."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", words)
        patch.setattr(launch, "serve", _serve_once)
        try:
            main()
        except SystemExit as end:
            return int(end.code or 0)
    return 0


def _serve_once(
    subjects: Any, host: str = "127.0.0.1", port: int | None = None, *, browser: bool = True,
    say: Any = print, models: Any = (), read_only: bool = False, story: Any = None,
) -> None:  # fmt: skip
    """Start the same server, fetch its first page, stop it."""
    with (
        launch.start(subjects, host, port, models, read_only) as running,
        urllib.request.urlopen(running.url, timeout=20) as answer,
    ):
        assert answer.status == 200 and b"<html" in answer.read()
