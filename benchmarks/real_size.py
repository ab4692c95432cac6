"""What do models and lengths of real size cost?

    python -m benchmarks.real_size                     the jobs that this machine can run
    python -m benchmarks.real_size smollm2-1952        some of them
    python -m benchmarks.real_size --smollm2 FILE      where smollm2.gguf lies

Each step of a job runs in a process of its own, so that its peak memory is its own; plain pass and
capture take turns. Shapes other than SmolLM2 have random weights: time does not depend on them.
A step gets ten minutes; UMAP is for the GPU alone. The plain pass runs the same batches, after one
short pass to warm up; on a GPU, after a pass over all texts, and a capture after one of two short
texts: what a process loads and compiles once is in neither. What one more text costs is the
difference of llama-7b-160 and llama-7b, a 144th of it.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

import attention_atlas as aa
from attention_atlas.models.load import Loaded, load
from benchmarks.capture import BATCH, WORDS
from benchmarks.machine import about

RESULTS = Path(__file__).parent / "real_size.md"
SMOLLM2 = Path(".cache/models/smollm2.gguf")
LIMIT = 600
STEPS = ("plain", "capture", "none", "measure", "umap")


@dataclass(frozen=True)
class Job:
    """A model and its texts."""

    model: str
    tokens: int  # of a text
    texts: int = 1
    cuda: bool = False
    steps: tuple[str, ...] = STEPS


JOBS = {
    "llama-7b": Job("llama", 560, 16, cuda=True),
    # Ten times the texts: what one more text costs, apart from what a run costs once.
    "llama-7b-160": Job("llama", 560, 160, cuda=True, steps=("plain", "none")),
    "qwen-934": Job("qwen", 934, cuda=True),
    "qwen-1900": Job("qwen", 1_900, cuda=True),
    "qwen-40000": Job("qwen", 40_000, cuda=True, steps=STEPS[:4]),
    "smollm2-991": Job("smollm2", 991),
    "smollm2-1952": Job("smollm2", 1_952),
    "smollm2-4071": Job("smollm2", 4_071),
    "smollm2-8192": Job("smollm2", 8_192),
}


def model_of(job: Job, smollm2: Path) -> Loaded:
    """Load or make the model of a job, with a tokenizer."""
    if job.model == "smollm2":
        return load(smollm2, device="cpu")
    size: dict[str, Any] = {"vocab_size": 32_000, "max_position_embeddings": 65_536}
    torch.manual_seed(0)
    with torch.device("cuda"):
        torch.set_default_dtype(torch.bfloat16)
        network: Any
        if job.model == "llama":
            network = LlamaForCausalLM(LlamaConfig(**size))  # 32 × 32 × 128: the 7-billion shape
        else:
            config = Qwen2Config(
                hidden_size=896, intermediate_size=4_864, num_hidden_layers=24,
                num_attention_heads=14, num_key_value_heads=2, **size,
            )  # fmt: skip
            network = Qwen2ForCausalLM(config)
        torch.set_default_dtype(torch.float32)
    return load((network.eval(), load("builtin:gpt", device="cpu").processor))


def texts_of(job: Job, loaded: Loaded) -> list[str]:
    """Make texts of words drawn at random, of about so many tokens each."""
    dice = torch.Generator().manual_seed(1)
    texts = []
    for _ in range(job.texts):
        picks = torch.randint(len(WORDS), (job.tokens,), generator=dice).tolist()
        words = [WORDS[word] for word in picks]
        few, many = 1, len(words)
        while few < many:  # as many words as fit; a text decoded again would have other tokens
            middle = (few + many + 1) // 2
            length = len(loaded.tokenizer(" ".join(words[:middle]))["input_ids"])
            few, many = (middle, many) if length <= job.tokens else (few, middle - 1)
        texts.append(" ".join(words[:few]))
    return texts


def plain(loaded: Loaded, texts: list[str]) -> None:
    """Run the model, and nothing else."""
    for start in range(0, len(texts), BATCH):
        tokens = loaded.tokenizer(texts[start : start + BATCH], padding=True, return_tensors="pt")
        tensors = {name: tokens[name].to(loaded.model.device) for name in ("input_ids",)}
        with torch.no_grad():
            loaded.model(**tensors)


def captured(loaded: Loaded, texts: list[str], folder: Path) -> None:
    """Capture into a folder that is named as the step."""
    aa.capture(
        (loaded.model, loaded.processor), texts, path=folder, batch_size=BATCH, progress=False,
        vectors="none" if folder.name == "none" else "all",
    )  # fmt: skip


def one_step(name: str, step: str, folder: Path, smollm2: Path) -> dict[str, float]:
    """Run one step of a job; return its seconds, bytes and peak memory in MiB."""
    loaded = model_of(JOBS[name], smollm2) if step in STEPS[:3] else None
    texts = texts_of(JOBS[name], loaded) if loaded is not None else []
    if loaded is not None:
        plain(loaded, [texts[0][:200]])
        if JOBS[name].cuda:
            plain(loaded, texts)
            if step != "plain":
                with tempfile.TemporaryDirectory() as place:
                    captured(loaded, [text[:2000] for text in texts[:2]], Path(place) / step)
            torch.cuda.synchronize()
    before = _now_mib()
    start = time.perf_counter()
    if step == "plain":
        assert loaded is not None
        plain(loaded, texts)
    elif step in ("capture", "none"):
        assert loaded is not None
        captured(loaded, texts, folder / step)
    elif step == "measure":
        aa.open(folder / "capture").measure(progress=False)
    else:
        aa.open(folder / "capture").layout("umap", progress=False)
    if JOBS[name].cuda:
        torch.cuda.synchronize()
    seconds = time.perf_counter() - start
    files = [path for path in (folder / step).rglob("*") if path.is_file()]
    gpu = torch.cuda.max_memory_allocated() / 2**20 if JOBS[name].cuda else 0.0
    return {
        "seconds": seconds,
        "over": _peak_mib() - before,
        "gpu": gpu,
        "bytes": float(sum(path.stat().st_size for path in files)),
    }


def _status(field: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return float(next(line for line in lines if line.startswith(field)).split()[1]) / 1024


def _now_mib() -> float:
    return _status("VmRSS")


def _peak_mib() -> float:
    return _status("VmHWM")


def in_process(name: str, step: str, folder: Path, smollm2: Path) -> dict[str, float] | None:
    """Run a step in another process; return its figures, None if it failed or took too long."""
    command = [sys.executable, "-m", "benchmarks.real_size", "--one", name, step, str(folder)]
    try:
        done = subprocess.run(
            [*command, "--smollm2", str(smollm2)], capture_output=True, text=True, timeout=LIMIT
        )
    except subprocess.TimeoutExpired:
        print(f"{name} {step}: not finished in {LIMIT} s", flush=True)
        return None
    if done.returncode:
        print(f"{name} {step}: {done.stderr.strip().splitlines()[-1:]}", flush=True)
        return None
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    print(name, step, figures, flush=True)
    return figures


def seconds_to_write(folder: Path, size: float) -> float:
    """Write so many bytes to the disk of the folder; return the seconds."""
    block, path = os.urandom(2**24), folder / "bytes"
    start = time.perf_counter()
    with path.open("wb") as file:
        for _ in range(max(1, int(size) // len(block))):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
    seconds = time.perf_counter() - start
    path.unlink()
    return seconds


def row(name: str, turns: int, smollm2: Path) -> str:
    """Run a job; return its row of the table: the fastest turn of each step."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        best: dict[str, dict[str, float]] = {}
        for _ in range(turns):
            for step in (step for step in STEPS[:3] if step in JOBS[name].steps):
                shutil.rmtree(folder / step, ignore_errors=True)
                figures = in_process(name, step, folder, smollm2)
                if figures and (step not in best or figures["seconds"] < best[step]["seconds"]):
                    best[step] = figures
        for step in STEPS[3:] if JOBS[name].cuda else STEPS[3:4]:
            if step not in JOBS[name].steps:
                continue
            figures = in_process(name, step, folder, smollm2)
            if figures:
                best[step] = figures
        written = seconds_to_write(folder, best.get("capture", {"bytes": 0})["bytes"])
    plain_pass, size = best["plain"], best.get("capture", {"bytes": 0})["bytes"]
    cells = [name, f"{plain_pass['seconds']:.2f}", f"{size / 2**20:.0f}", f"{written:.2f}"]
    for step in STEPS[1:]:
        known = best.get(step)
        ratio = "" if known is None else f" ({known['seconds'] / plain_pass['seconds']:.2f} ×)"
        cells.append("–" if known is None else f"{known['seconds']:.2f}{ratio}")
    for step in ("capture", "measure"):
        over = best.get(step, {"over": float("nan")})["over"] - (
            plain_pass["over"] if step == "capture" else 0
        )
        cells.append(f"{over:.0f}")
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("jobs", nargs="*")
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--smollm2", type=Path, default=SMOLLM2)
    parser.add_argument("--one", nargs=3, metavar=("JOB", "STEP", "FOLDER"))
    asked = parser.parse_args()
    if asked.one:
        name, step, folder = asked.one
        print(json.dumps(one_step(name, step, Path(folder), asked.smollm2)))
        return
    possible = [name for name, job in JOBS.items() if not job.cuda or torch.cuda.is_available()]
    lines = [
        "# Models and lengths of real size",
        "",
        about(),
        "",
        "Seconds; in brackets times the plain pass. Memory in MiB: capture over the plain pass,",
        "measuring over what the process had before.",
        "",
        "| job | plain | atlas MiB | writing so much | capture | vectors none | measure | UMAP "
        "| memory, capture | memory, measure |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name in asked.jobs or possible:
        lines.append(row(name, asked.turns, asked.smollm2))
        print(lines[-1], flush=True)
    RESULTS.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
