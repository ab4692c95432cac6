"""Is this checkout slower than another one? Both run the same benchmarks in turns.

    python -m benchmarks.before_after ../other-checkout [--turns 2]

Both checkouts need their page built (`python hatch_build.py`). The figure of a side is its fastest
turn, the one least disturbed on a shared machine. Results go to before_after.md; the result files
of the single benchmarks are put back as they were.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.machine import about

HERE = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "before_after.md"
LAYOUTS = """
import json, tempfile, time
import attention_atlas as aa
words = "the old man saw a small house by the river because she asked him to wait".split()
texts = [" ".join(words[i % 7 :] + words[: i % 11]) + f" {i}." for i in range(60)]
with tempfile.TemporaryDirectory() as folder:
    atlas = aa.capture("builtin:bert", texts, path=f"{folder}/x.atlas", progress=False)
    times = {}
    for method in ("pca", "umap", "tsne"):
        start = time.perf_counter()
        atlas.layout(method, progress=False)
        times[f"layout, {method}, s"] = time.perf_counter() - start
    start = time.perf_counter()
    atlas.measure(progress=False)
    times["measure, s"] = time.perf_counter() - start
print(json.dumps(times))
"""
Times = dict[str, float]


def capture(text: str) -> Times:
    """Read wall time over a plain pass from the table of benchmarks.capture."""
    row = next(line for line in text.splitlines() if line.startswith("| ours"))
    return {"capture, times a plain pass": float(row.split("|")[5])}


def layouts(text: str) -> Times:
    """Read the seconds of LAYOUTS."""
    return dict(json.loads(next(line for line in text.splitlines() if line.startswith("{"))))


def matrix(text: str) -> Times:
    """Read what benchmarks.matrix says of our page, in milliseconds."""
    found = json.loads(re.findall(r"^ours (\{.*)$", text, re.MULTILINE)[-1])
    steps = {"first": "first frame", "recolour": "recolour", "search": "search", "pan": "pan"}
    return {f"matrix, {label}, ms": found[name]["wall"] for name, label in steps.items()}


def close_ups(text: str) -> Times:
    """Read when benchmarks.bertviz saw our page painted and hovered, in milliseconds."""
    rows = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return {
        f"{row['view']} view, {name}, ms": row[f"{name}_ms"]
        for row in rows
        for name in ("paint", "hover")
        if isinstance(row.get(f"{name}_ms"), int | float)
    }


MATRIX = "benchmarks.matrix --only ours --cases"
BERTVIZ = "benchmarks.bertviz --tools atlas --tokens 128 --layers 12"
JOBS: list[tuple[list[str], Callable[[str], Times]]] = [
    (["-m", "benchmarks.capture", "--rounds", "2"], capture),
    (["-c", LAYOUTS], layouts),
    (["-m", *MATRIX.split(), "144 heads × 10,000 points"], matrix),
    (["-m", *BERTVIZ.split()], close_ups),
]


def run(checkout: Path, words: list[str]) -> str:
    """Run Python in a checkout with its own code; returns what it printed."""
    paths = f"{checkout / 'src'}{os.pathsep}{checkout}"
    done = subprocess.run(
        [sys.executable, *words], cwd=checkout, capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": paths},
    )  # fmt: skip
    subprocess.run(["git", "checkout", "-q", "--", "benchmarks"], cwd=checkout, check=False)
    return done.stdout + "\n" + done.stderr


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path, help="the checkout to compare with: before")
    parser.add_argument("--turns", type=int, default=2)
    asked = parser.parse_args()
    sides = {"before": asked.other.resolve(), "after": HERE}
    best: dict[str, Times] = {name: {} for name in sides}
    for words, read in JOBS:
        for _ in range(asked.turns):
            for name, checkout in sides.items():
                for label, value in read(run(checkout, words)).items():
                    best[name][label] = min(value, best[name].get(label, value))
                    print(name, label, round(value, 3), flush=True)
    lines = ["# Before and after", "", f"{about()}; fastest of {asked.turns} turns.", ""]
    lines += ["| | before | after | after ÷ before |", "|---|---:|---:|---:|"]
    for label, old in best["before"].items():
        new = best["after"][label]
        lines.append(f"| {label} | {old:.3g} | {new:.3g} | {new / old:.2f} |")
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
