"""How long does a million tokens of one head take, from vectors to a recoloured picture?

    python -m benchmarks.million FOLDER          makes the atlases there; prints JSON, a line a step
    python -m benchmarks.million FOLDER --page   only the page, on what FOLDER holds

Each step runs in a process of its own, so that its peak memory is its own. The page runs in
Chromium at 1440 × 900; where there is no GPU, WebGL is SwiftShader.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.machine import about
from benchmarks.million_data import make_atlas

SIZES = (10_000, 100_000, 1_000_000)
HEAD = "L0H0"


def capture(folder: Path, tokens: int) -> None:
    make_atlas(folder, tokens)


def lay_out(folder: Path, tokens: int) -> None:
    import attention_atlas as aa

    aa.open(folder).layout("umap", progress=False, device="cpu")


def place(folder: Path, tokens: int) -> None:
    import attention_atlas as aa

    assert aa.open(folder).place_all("umap", progress=False, device="cpu") == []


STEPS = {"capture": capture, "lay out": lay_out, "place": place}


def run_step(folder: Path, tokens: int, step: str) -> dict[str, Any]:
    """Run one step; returns its seconds and the peak memory of its process."""
    import attention_atlas as aa
    from attention_atlas.layout import rest, run  # noqa: F401  imported before the clock starts

    assert aa
    before = _peak()
    start, worked = time.perf_counter(), time.process_time()
    STEPS[step](folder, tokens)
    seconds, cpu = time.perf_counter() - start, time.process_time() - worked
    return {
        "tokens": tokens,
        "step": step,
        "seconds": round(seconds, 2),
        "cpu_seconds": round(cpu, 2),
        "before_mib": round(before),
        "peak_mib": round(_peak()),
    }


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--step", nargs=2, metavar=("TOKENS", "STEP"))
    asked = parser.parse_args()
    if asked.step:
        tokens = int(asked.step[0])
        print(json.dumps(run_step(asked.folder / f"{tokens}.atlas", tokens, asked.step[1])))
        return
    print(json.dumps({"machine": about()}))
    for tokens in () if asked.page else SIZES:
        for step in STEPS:
            command = [sys.executable, "-m", "benchmarks.million", str(asked.folder),
                       "--step", str(tokens), step]  # fmt: skip
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            print(done.stdout.strip(), flush=True)
    from benchmarks.million_page import measure_page

    print(json.dumps(measure_page(asked.folder / f"{SIZES[-1]}.atlas", HEAD)))


if __name__ == "__main__":
    main()
