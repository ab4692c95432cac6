"""What do all scores cost beside the capture they are made from?

    python -m benchmarks.measure

The model and sentences of `benchmarks.capture`: 12 layers × 12 heads × 64, 200 sentences. Scores
are all those of one pass, with intervals, chance and kinds, without gradients; the folder is read
from disk. The same at 100 and 400 sentences, each pass in a process of its own, for growth and peak
memory; and one input of 2,000 tokens in a GPT-2 of 2 layers × 12 heads × 64.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import attention_atlas as aa
from attention_atlas.measure.run import measure_atlas
from benchmarks.machine import about

RESULTS = Path(__file__).parent / "measure.md"
COUNTS = (100, 200, 400)
LONG = 2000


def one(folder: Path) -> None:
    """Measure a folder; prints seconds and the most MiB of its own."""
    own = [0.0]
    threading.Thread(target=watch, args=(own,), daemon=True).start()
    start = time.perf_counter()
    measure_atlas(aa.open(folder), again=True, progress=False)
    seconds = time.perf_counter() - start
    print(json.dumps([seconds, own[0]]))


def watch(own: list[float]) -> None:
    """MiB of its own at the most: shards are mapped, and what is read of them stays as long as
    nobody else needs the room, so the peak that Linux tells counts the files too."""
    while True:
        own[0] = max(own[0], _status("RssAnon"))
        time.sleep(0.01)


def peak() -> float:
    """MiB. Not ru_maxrss, which a child takes over from the process that started it."""
    return _status("VmHWM")


def _status(name: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith(name)]
    return int(line.split()[1]) / 1024


def measured(folder: Path) -> tuple[float, float]:
    command = [sys.executable, "-m", "benchmarks.measure", "--one", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, most = json.loads(done.stdout.splitlines()[-1])
    return float(seconds), float(most)


def long_input() -> tuple[float, float]:
    """Seconds and MiB for one long input of random tokens and random weights."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(n_layer=2, n_positions=LONG, vocab_size=1000)).eval()
    ids = {"input_ids": torch.randint(0, 1000, (1, LONG))}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "x.atlas"
        aa.capture(model, [ids], path=folder, progress=False)
        return measured(folder)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--one", type=Path)
    asked = parser.parse_args()
    if asked.one:
        one(asked.one)
        return
    import torch  # not where a pass is measured: it would count as memory of the pass

    from benchmarks.capture import base_model, ours, sentences

    loaded = base_model()
    ours(loaded, sentences(8, torch.Generator().manual_seed(2)), Path(tempfile.mkdtemp()) / "warm")
    rows = [
        "| sentences | tokens | capture s | measure s | ratio | own memory at most, MiB |",
        "|---|---|---|---|---|---|",
    ]
    for count in COUNTS:
        texts = sentences(count, torch.Generator().manual_seed(1))
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place) / "x.atlas"
            start = time.perf_counter()
            ours(loaded, texts, folder)
            capture = time.perf_counter() - start
            seconds, most = measured(folder)
            tokens = aa.open(folder).manifest.tokens
        rows.append(
            f"| {count} | {tokens} | {capture:.1f} | {seconds:.1f} | {seconds / capture:.2f} "
            f"| {most:.0f} |"
        )
    seconds, most = long_input()
    told = f"One input of {LONG} tokens: {seconds:.1f} s, {most:.0f} MiB of its own at most."
    page = "\n".join(["# All scores beside the capture", "", about(), "", *rows, "", told]) + "\n"
    RESULTS.write_text(page)
    print(page)


if __name__ == "__main__":
    main()
