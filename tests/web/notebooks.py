"""Notebook servers of their own, with nobody's settings, and notebooks for them."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

SECONDS = 120  # a server may take so long to answer on a busy machine


@contextmanager
def jupyter(module: str, folder: Path) -> Iterator[str]:
    """Run `python -m jupyterlab` or `python -m notebook` on a folder; gives its address."""
    port = free_port()
    options = [
        f"--ServerApp.port={port}", "--ServerApp.port_retries=0", "--no-browser", "--allow-root",
        "--IdentityProvider.token=", f"--ServerApp.root_dir={folder}",
        "--LabApp.news_url=", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--LabApp.expose_app_in_browser=True", "--JupyterNotebookApp.expose_app_in_browser=True",
    ]  # fmt: skip
    url = f"http://127.0.0.1:{port}"
    with running([sys.executable, "-m", module, *options], folder, f"{url}/api"):
        yield url


@contextmanager
def running(command: Sequence[str], folder: Path, ready: str) -> Iterator[None]:
    """Run a server until the end of the block, once it answers at the address `ready`."""
    home = folder / ".home"
    home.mkdir(exist_ok=True)
    names = ("HOME", "JUPYTER_CONFIG_DIR", "IPYTHONDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME",
             "XDG_STATE_HOME")  # fmt: skip
    log = folder / "server.log"
    with log.open("w") as told:
        process = subprocess.Popen(
            command, stdout=told, stderr=told, cwd=folder,
            env={**os.environ, **dict.fromkeys(names, str(home))},
        )  # fmt: skip
        try:
            end = time.monotonic() + SECONDS
            while not answers(ready):
                assert time.monotonic() < end and process.poll() is None, log.read_text()
                time.sleep(0.2)
            yield
        finally:
            process.terminate()
            process.wait(30)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def notebook(*cells: str) -> str:
    """A notebook of cells with code, as its file has it."""
    made: list[dict[str, Any]] = [
        {"cell_type": "code", "id": f"c{i}", "metadata": {}, "source": source, "outputs": [],
         "execution_count": None}
        for i, source in enumerate(cells)
    ]  # fmt: skip
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return json.dumps({"cells": made, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5})
