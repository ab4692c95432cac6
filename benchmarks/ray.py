"""What does a Ray cluster cost on top of this machine alone?

    python -m benchmarks.ray [--sentences 300] [--tokens 300] [--rounds 2]

Ray is started here with two cores. First its parts alone: starting it, starting a worker, one job
without work, one shard of 128 MiB. Then the same capture, layout and measuring by both engines, in
turns, in one process; every side writes its own folder, and the folders are compared byte for byte.
Seconds of the clock: the work happens in several processes.
"""

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

import attention_atlas as aa
from attention_atlas.engine.cluster import Cluster
from attention_atlas.engine.connect import start
from attention_atlas.engine.job import Engine, Job
from attention_atlas.engine.local import Local
from attention_atlas.store.parts import Contents, Journal
from benchmarks.capture import WORDS
from benchmarks.machine import about

RESULTS = Path(__file__).parent / "ray.md"
SHARD = 128 * 2**20
Round = dict[str, dict[str, float]]  # side → step → seconds
SIDES = ("local", "ray, one worker", "ray, two workers", "ray, two workers, shared folder")


def nothing(asked: Mapping[str, Any]) -> int:
    """Do no work."""
    return int(asked["number"])


def shard(asked: Mapping[str, Any]) -> Contents:
    """Return a part as large as a shard."""
    return Contents({"x": np.full(SHARD, asked["number"], np.uint8)})


def jobs(work: str, count: int) -> list[Job]:
    return [
        Job(str(n), f"benchmarks.ray:{work}", {"number": n}, large=work == "shard")
        for n in range(count)
    ]


def timed(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def engines(shared: Path) -> dict[str, Engine]:
    sides = Local(), Cluster(workers=1), Cluster(workers=2), Cluster(workers=2, shared=str(shared))
    return dict(zip(SIDES, sides, strict=True))


def parts(folder: Path) -> dict[str, float]:
    """Time the parts of the engine alone; a worker that is started imports our package."""
    one, by_folder = Cluster(workers=1), Cluster(workers=1, shared=str(folder / "shared"))
    start = time.perf_counter()
    ends = done_times(one, jobs("nothing", 201), lambda number, result: None)
    found = {"start a worker, s": ends[0] - start, "a job without work, ms": apart(ends) * 1e3}
    for name, engine in (("local", Local()), ("by value", one), ("shared folder", by_folder)):
        ends = done_times(engine, jobs("shard", 6), Journal(folder / name).add)
        found[f"a shard of 128 MiB, {name}, s"] = apart(ends)
    return found


def done_times(engine: Engine, work: list[Job], add: Callable[[int, Any], object]) -> list[float]:
    """Run jobs; return when each was done."""
    ends = []

    def done(job: Job, result: Any) -> None:
        add(int(job.name), result)
        ends.append(time.perf_counter())

    engine.run(work, done)
    return ends


def apart(ends: list[float]) -> float:
    """Return the seconds between two ends, the first left out: it started the worker."""
    return (ends[-1] - ends[0]) / (len(ends) - 1)


def steps(folder: Path, engine: Engine, texts: list[str], tokens: int) -> dict[str, float]:
    """Capture, lay out and measure; return the seconds of each."""
    shutil.rmtree(folder, ignore_errors=True)
    times = {}
    times["capture"] = timed(
        lambda: aa.capture(
            "builtin:gpt", texts, path=folder, device="cpu", progress=False, engine=engine,
            shard_bytes=4 * 2**20,
        )
    )  # fmt: skip
    atlas = aa.open(folder)
    asked: dict[str, Any] = {"device": "cpu", "progress": False, "engine": engine}
    times["layout"] = timed(lambda: atlas.layout("umap", tokens=tokens, **asked))
    times["measure"] = timed(lambda: atlas.measure(**asked))
    return times


def contents(folder: Path) -> dict[str, bytes]:
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def sentences(count: int) -> list[str]:
    dice = torch.Generator().manual_seed(1)
    picks = torch.randint(len(WORDS), (count, 25), generator=dice).tolist()
    return [" ".join(WORDS[word] for word in words) for words in picks]


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--sentences", type=int, default=300)
    arguments.add_argument("--tokens", type=int, default=300)
    arguments.add_argument("--rounds", type=int, default=2)
    asked = arguments.parse_args()
    torch.set_num_threads(1)
    import ray

    options = {"address": "local", "num_cpus": 2, "object_store_memory": 2**30}
    begin = timed(lambda: start(ray, **options))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        alone = {"start Ray, s": begin, **parts(folder)}
        print(alone, flush=True)
        sides = engines(folder / "shared")
        texts = sentences(asked.sentences)
        rounds: list[Round] = []
        for _ in range(asked.rounds):
            rounds.append({})
            for name in SIDES:
                rounds[-1][name] = steps(folder / name, sides[name], texts, asked.tokens)
                print(name, rounds[-1][name], flush=True)
        expected = contents(folder / "local")
        same = all(contents(folder / name) == expected for name in SIDES)
        shards = len(aa.open(folder / "local").manifest.shards)
    write(asked, shards, alone, rounds, same)


def write(
    asked: argparse.Namespace, shards: int, alone: dict[str, float], rounds: list[Round], same: bool
) -> None:
    lines = ["# What a Ray cluster costs", "", f"{about()}, two of them for Ray", ""]
    lines += ["| part | |", "|---|---:|"]
    lines += [f"| {name} | {value:.2f} |" for name, value in alone.items()]
    lines += ["", f"`builtin:gpt`, {asked.sentences} sentences in {shards} shards, UMAP of "
              f"{asked.tokens} tokens a head, all measures; one thread a worker, {len(rounds)} "
              "rounds in turns. Median seconds, and the median of the ratios to local in its "
              "round. Workers start anew in each step, and each loads the model."]  # fmt: skip
    lines += ["", "| side | capture | layout | measure |", "|---|---:|---:|---:|"]
    for name in SIDES:
        cells = []
        for step in ("capture", "layout", "measure"):
            seconds = median(one[name][step] for one in rounds)
            ratio = median(one[name][step] / one["local"][step] for one in rounds)
            cells.append(f"{seconds:.1f} ({ratio:.2f} ×)")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    equal = "the same" if same else "NOT the same"
    lines += ["", f"All four folders are {equal}, byte for byte."]
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
