"""What does capturing cost over a plain forward pass?

    python -m benchmarks.capture            the times, three sides in turns, in one process
    python -m benchmarks.capture --memory   peak memory at 200 and 2,000 sentences as well

A BERT of 12 layers × 12 heads × 64 with random weights (time does not depend on them) reads 200
sentences in batches of 8, sorted by length, padded. Ours includes the probe, the receipt, writing
the folder and reading it back. The order of the sides changes from round to round. The machine is
shared and its speed changes by a third within minutes, so a side's figure is its fastest round, the
one least disturbed; the median of the ratios within a round stands beside it.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers import BertConfig, BertModel

import attention_atlas as aa
from attention_atlas.models.load import Loaded, load
from benchmarks.machine import about

RESULTS = Path(__file__).parent / "capture.md"
BATCH = 8
WORDS = [
    "the", "a", "old", "young", "tall", "small", "man", "woman", "farmer", "doctor", "river",
    "house", "letter", "garden", "said", "asked", "gave", "took", "saw", "found", "lost", "kept",
    "because", "although", "when", "while", "if", "and", "but", "or", "so", "her", "his", "not",
]  # fmt: skip


def sentences(count: int, dice: torch.Generator) -> list[str]:
    """Made-up sentences of 10 to 45 words."""
    lengths = torch.randint(10, 46, (count,), generator=dice).tolist()
    picks = [torch.randint(len(WORDS), (n,), generator=dice).tolist() for n in lengths]
    return [" ".join(WORDS[word] for word in pick) + "." for pick in picks]


def base_model() -> Loaded:
    """12 × 12 × 64, with the tokenizer of the built-in model."""
    tokenizer: Any = load("builtin:bert").processor
    torch.manual_seed(0)
    return load((BertModel(BertConfig(vocab_size=len(tokenizer))).eval(), tokenizer))


def batches(loaded: Loaded, texts: list[str]) -> list[dict[str, torch.Tensor]]:
    tokenizer: Any = loaded.processor
    ordered = sorted(texts, key=lambda text: len(tokenizer(text)["input_ids"]))
    return [
        tokenizer(ordered[start : start + BATCH], padding=True, return_tensors="pt")
        for start in range(0, len(ordered), BATCH)
    ]


def plain(loaded: Loaded, texts: list[str]) -> None:
    with torch.no_grad():
        for batch in batches(loaded, texts):
            loaded.model(**batch)


def with_output_attentions(loaded: Loaded, texts: list[str]) -> None:
    loaded.model.set_attn_implementation("eager")
    try:
        with torch.no_grad():
            for batch in batches(loaded, texts):
                loaded.model(**batch, output_attentions=True)
    finally:
        loaded.model.set_attn_implementation("sdpa")


def ours(loaded: Loaded, texts: list[str], folder: Path) -> None:
    model = (loaded.model, loaded.processor)
    aa.capture(model, texts, path=folder, batch_size=BATCH, progress=False)


def seconds(work: Callable[[], None]) -> tuple[float, float]:
    """(CPU, wall)"""
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - cpu, time.perf_counter() - wall


def times(rounds: int, count: int) -> str:
    loaded = base_model()
    texts = sentences(count, torch.Generator().manual_seed(1))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "x.atlas"
        sides = {
            "plain forward": lambda: plain(loaded, texts),
            "ours, folder written": lambda: ours(loaded, texts, folder),
            "output_attentions": lambda: with_output_attentions(loaded, texts),
        }
        plain(loaded, texts[:BATCH])
        spent: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
        for turn in range(rounds):
            names = list(sides)
            for name in names[turn % 3 :] + names[: turn % 3]:
                shutil.rmtree(folder, ignore_errors=True)
                spent[name].append(seconds(sides[name]))
                print(f"round {turn + 1}: {name} {spent[name][-1][1]:.2f} s", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        ours(loaded, texts, folder)
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        tokens = aa.open(folder).manifest.tokens
    lines = [
        "| side | CPU s | wall s | CPU / plain | wall / plain | median of wall ratios |",
        "|---|---|---|---|---|---|",
    ]
    base = spent["plain forward"]
    for name, rows in spent.items():
        best, of = ([min(row[kind] for row in side) for kind in (0, 1)] for side in (rows, base))
        median = statistics.median(row[1] / ref[1] for row, ref in zip(rows, base, strict=True))
        lines.append(
            f"| {name} | {best[0]:.1f} | {best[1]:.1f} | {best[0] / of[0]:.2f} "
            f"| {best[1] / of[1]:.2f} | {median:.2f} |"
        )
    head = f"{count} sentences, {tokens} tokens, {rounds} rounds; folder {size / 2**20:.0f} MiB."
    return "\n".join([head, "", *lines])


def memory() -> str:
    """Peak memory of whole processes, which nothing else can blur."""
    lines = ["| sentences | plain forward MiB | ours MiB | ours − plain |", "|---|---|---|---|"]
    for count in (200, 2000):
        peaks = [_peak(side, count) for side in ("plain", "ours")]
        lines.append(f"| {count} | {peaks[0]:.0f} | {peaks[1]:.0f} | {peaks[1] - peaks[0]:.0f} |")
    return "\n".join(lines)


def _peak(side: str, count: int) -> float:
    command = [sys.executable, "-m", "benchmarks.capture", "--one", side, str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout.splitlines()[-1]))


def one(side: str, count: int) -> None:
    loaded = base_model()
    texts = sentences(count, torch.Generator().manual_seed(1))
    with tempfile.TemporaryDirectory() as place:
        if side == "plain":
            plain(loaded, texts)
        else:
            ours(loaded, texts, Path(place) / "x.atlas")
    print(json.dumps(_high_water() / 1024))


def _high_water() -> float:
    """KiB at the most; not getrusage, which counts what the parent had before it started us."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return float(next(line for line in lines if line.startswith("VmHWM")).split()[1])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--one", nargs=2, metavar=("SIDE", "COUNT"))
    asked = parser.parse_args()
    if asked.one:
        one(asked.one[0], int(asked.one[1]))
        return
    parts = [
        "# Capture against a plain forward pass",
        "",
        about(),
        "",
        times(asked.rounds, asked.count),
    ]
    if asked.memory:
        parts += ["", "## Peak memory of the process", "", memory()]
    RESULTS.write_text("\n".join(parts) + "\n")
    print("\n".join(parts))


if __name__ == "__main__":
    main()
