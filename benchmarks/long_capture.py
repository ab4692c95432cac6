"""What does capturing one long text cost over a plain forward pass, in time and in memory?

    python -m benchmarks.long_capture .cache/models/smollm2.gguf

SmolLM2 (135 million parameters, 30 layers, 9 heads) reads the first tokens of this project's own
documents as one text. Each side runs in a process of its own, one after the other, in changing
order. A side's time is its fastest round; memory is the highest that its process reached after the
model was loaded, less what it had then. Ours includes the receipt, writing the folder and reading
it back.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

import attention_atlas as aa
from attention_atlas.models.load import Loaded, load
from benchmarks.machine import about

RESULTS = Path(__file__).parent / "long_capture.md"
LENGTHS = (512, 1024, 1952, 4096, 8192)
SIDES = ("plain", "ours")


def tokens_of(loaded: Loaded, count: int) -> torch.Tensor:
    """The ids (1, N) of the first tokens of all documents, in the order of their names."""
    documents = sorted((Path(__file__).parents[1] / "docs").rglob("*.md"))
    text = "\n".join(path.read_text() for path in documents)
    ids = loaded.tokenizer(text, return_tensors="pt")["input_ids"][:, :count]
    assert ids.shape[1] == count, f"the documents have only {ids.shape[1]} tokens"
    return torch.as_tensor(ids)


def one(model: str, side: str, count: int) -> None:
    """Run one side in this process; print its figures as JSON."""
    loaded, capture = load(model, device="cpu"), aa.capture  # modules are imported before the clock
    ids = tokens_of(loaded, count)
    with torch.no_grad():
        loaded.model(ids[:, :8])  # threads and kernels are started by the first pass
    Path("/proc/self/clear_refs").write_text("5")  # the highest memory counts from here
    before, cpu, wall = memory("VmRSS"), time.process_time(), time.perf_counter()
    rows = ""
    if side == "plain":
        with torch.no_grad():
            loaded.model(ids)
    else:
        with tempfile.TemporaryDirectory() as place:
            atlas = capture(
                (loaded.model, loaded.processor), [{"input_ids": ids}],
                path=Path(place) / "x.atlas", progress=False,
            )  # fmt: skip
            seen = atlas.receipt.run
            assert atlas.receipt.exact and seen is not None
            rows = f"{seen.compared:,} of {seen.of:,}"
    figures = {
        "wall": time.perf_counter() - wall,
        "cpu": time.process_time() - cpu,
        "memory": (memory("VmHWM") - before) / 1024,
        "rows": rows,
    }
    print(json.dumps(figures))


def memory(what: str) -> float:
    """KiB of this process: VmRSS now, VmHWM at the most."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return float(next(line for line in lines if line.startswith(what)).split()[1])


def measured(model: str, side: str, count: int) -> dict[str, float]:
    """The figures of one side in a new process."""
    command = [sys.executable, "-m", "benchmarks.long_capture", model, "--one", side, str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    print(count, side, figures, flush=True)
    return figures


def table(model: str, lengths: tuple[int, ...], rounds: int) -> str:
    """The rows of all lengths, both sides in turns."""
    lines = [
        "| tokens | plain s | ours s | ours / plain | of CPU time | plain MB | ours MB "
        "| over plain MB | rows compared in the run |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for count in lengths:
        runs: dict[str, list[dict[str, float]]] = {side: [] for side in SIDES}
        for turn in range(rounds):
            for side in SIDES[:: 1 if turn % 2 else -1]:
                runs[side].append(measured(model, side, count))
        wall, cpu, most = (
            [min(run[what] for run in runs[side]) for side in SIDES]
            for what in ("wall", "cpu", "memory")
        )
        lines.append(
            f"| {count:,} | {wall[0]:.1f} | {wall[1]:.1f} | {wall[1] / wall[0]:.2f} "
            f"| {cpu[1] / cpu[0]:.2f} | {most[0]:.0f} | {most[1]:.0f} | {most[1] - most[0]:.0f} "
            f"| {runs['ours'][0]['rows']} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--tokens", type=int, nargs="*", default=LENGTHS)
    parser.add_argument("--one", nargs=2, metavar=("SIDE", "TOKENS"))
    asked = parser.parse_args()
    if asked.one:
        one(asked.model, asked.one[0], int(asked.one[1]))
        return
    lines = table(asked.model, tuple(asked.tokens), asked.rounds)
    text = f"# Capture of one long text against a plain forward pass\n\n{about()}\n\n{lines}\n"
    RESULTS.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
