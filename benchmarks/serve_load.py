"""How does a server hold up when many people use it?

    python -m benchmarks.serve_load make FOLDER      the atlas: 144 heads × 10,000 points
    python -m benchmarks.serve_load load FOLDER      50 people browse, alone and beside 2 who edit
    python -m benchmarks.serve_load soak FOLDER      20 minutes at a low rate: is memory flat?

A person opens the page (about, map, points, scores), then looks at one thing after another (an
input, its lines, exact rows, what a point looks at, a head's card), about one a second. The server
is a process of its own; so are all people together. Results are added to results/serve-load.json.
"""

import argparse
import asyncio
import json
import math
import os
import random
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil

from benchmarks import machine, million_data

LAYERS, HEADS, WIDTH, TOKENS, LENGTH = 12, 12, 64, 5000, 50
RESULTS = Path(__file__).parent / "results" / "serve-load.json"
PEOPLE, EDITORS = 50, 2
Times = dict[str, list[float]]
Memory = list[tuple[float, float]]  # seconds, megabytes


def model() -> tuple[Any, Any]:
    """Make a model of GPT-2's shape with random weights, the same each time, and its tokenizer."""
    import torch
    import transformers

    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=million_data.WORDS, n_positions=128, n_embd=HEADS * WIDTH, n_layer=LAYERS,
        n_head=HEADS, bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    return transformers.GPT2LMHeadModel(config).eval(), million_data._tokenizer()


def make(folder: Path) -> None:
    """Capture, lay out and measure the atlas; a server does not care by which method."""
    import attention_atlas as aa

    draw = np.random.default_rng(0)
    texts = [million_data._text(draw, LENGTH) for _ in range(TOKENS // LENGTH)]
    made, tokenizer = model()
    atlas = aa.capture(made, texts, tokenizer=tokenizer, path=folder, keep=("query", "key"))
    atlas.layout("pca")
    atlas.measure()


def serve(folder: Path) -> None:
    """Serve the atlas with its model until the process is ended; print the link."""
    import attention_atlas as aa
    from attention_atlas.page.hosts.launch import serve
    from attention_atlas.page.live.model import LiveModel

    atlas, models = aa.open(folder), [LiveModel(*model())]
    serve([atlas], port=0, browser=False, models=models, say=partial(print, flush=True))


class Served:
    """The server as a process."""

    def __init__(self, folder: Path):
        command = [sys.executable, "-m", "benchmarks.serve_load", "serve", str(folder)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().split()[1] + "api/"
        self._known = psutil.Process(self._process.pid)

    def __enter__(self) -> "Served":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(30)

    @property
    def megabytes(self) -> float:
        """Get the memory of its own that the server holds; files that only it maps count too."""
        memory = self._known.memory_full_info()
        return float(memory.uss) / 1e6

    @property
    def anonymous(self) -> float:
        """Get the memory of the server in megabytes that is no page of a file."""
        lines = Path(f"/proc/{self._process.pid}/status").read_text().splitlines()
        (kilobytes,) = (line.split()[1] for line in lines if line.startswith("RssAnon"))
        return int(kilobytes) * 1024 / 1e6


class Person:
    """One page: what it asks for, and how long each answer took."""

    def __init__(self, url: str, number: int, times: Times, counts: "Counter[str]"):
        self._dice, self._times, self._counts = random.Random(number), times, counts
        headers = {"X-Atlas-Page": f"person{number}"}
        self._client = httpx.AsyncClient(base_url=url, headers=headers, timeout=120)

    async def get(self, path: str) -> None:
        await self._timed(path.partition("/")[0], self._client.get(path))

    async def _timed(self, kind: str, asking: Any) -> None:
        began = time.monotonic()
        try:
            status = str((await asking).status_code)
        except httpx.HTTPError as problem:
            status = type(problem).__name__
        self._times[kind].append(time.monotonic() - began)
        self._counts[status] += 1

    async def browse(self, pause: float, end: float) -> None:
        """Open the page and look around until the end."""
        await asyncio.sleep(self._dice.random() * min(10.0, 5 * pause))
        for path in ("about", "map/pca-2d/decoder", "points/pca-2d/decoder", "heads"):
            await self.get(path)
        while time.monotonic() < end:
            await asyncio.sleep(min(5 * pause, self._dice.expovariate(1 / pause)))
            await self.get(self._look())

    def _look(self) -> str:
        i, position = self._dice.randrange(TOKENS // LENGTH), self._dice.randrange(LENGTH)
        layer, head = self._dice.randrange(LAYERS), self._dice.randrange(HEADS)
        name = f"L{layer}H{head}"
        return self._dice.choice([
            f"input/{i}", f"edges/{i}/decoder/{layer}", f"edges/{i}/decoder", f"rows/{i}/{name}",
            f"partners/{i}/{name}/query/{position}", f"card/{name}", f"mean/{name}",
        ])  # fmt: skip

    async def edit(self, pause: float, end: float) -> None:
        """Send one edit after another until the end."""
        while time.monotonic() < end:
            head = f"L{self._dice.randrange(LAYERS)}H{self._dice.randrange(HEADS)}"
            edits = [{"edit": "scale", "heads": [head], "by": round(self._dice.random(), 3)}]
            body = {"input": self._dice.randrange(8), "edits": edits}
            await self._timed("edit", self._client.post("edit", json=body))
            await asyncio.sleep(pause)


async def crowd(
    url: str, people: int, editors: int, pause: float, seconds: float, each: Callable[[], None]
) -> tuple[Times, "Counter[str]"]:
    """Let people use a server for some seconds; return the times of their requests and statuses."""
    times: Times = defaultdict(list)
    counts: Counter[str] = Counter()
    end = time.monotonic() + seconds
    persons = [Person(url, number, times, counts) for number in range(people + editors)]
    work = [person.browse(pause, end) for person in persons[:people]]
    work += [person.edit(2 * pause if pause > 1 else 0.1, end) for person in persons[people:]]

    async def look() -> None:
        while time.monotonic() < end:
            each()
            await asyncio.sleep(10)

    await asyncio.gather(look(), *work)
    for person in persons:
        await person._client.aclose()
    return times, counts


def figures(times: Times) -> dict[str, dict[str, float]]:
    """Return count, median, 95th and 99th percentile and slowest of each kind, milliseconds."""
    every = {
        **times,
        "all views": [s for kind, own in times.items() if kind != "edit" for s in own],
    }
    return {
        kind: {
            "count": len(own),
            **{f"p{p}": round(1000 * float(np.percentile(own, p)), 1) for p in (50, 95, 99, 100)},
        }
        for kind, own in sorted(every.items())
    }


def load(folder: Path, seconds: float) -> dict[str, Any]:
    """People browse alone, then beside two who edit all the time."""
    found: dict[str, Any] = {}
    with Served(folder) as served:
        for name, editors in (("views alone", 0), ("views beside edits", EDITORS)):
            before = os.getloadavg()[0]
            times, counts = asyncio.run(
                crowd(served.url, PEOPLE, editors, 1.0, seconds, lambda: None)
            )
            found[name] = {
                "answers": dict(counts), "milliseconds": figures(times),
                "server MB": round(served.megabytes), "load before": round(before, 1),
            }  # fmt: skip
    return found


def soak(folder: Path, seconds: float) -> dict[str, Any]:
    """Ten people and two who edit, at a low rate; the server's memory every ten seconds."""
    with Served(folder) as served:
        began, load = time.monotonic(), list[float]()
        memory: dict[str, Memory] = {"all of its own": [], "anonymous": []}

        def note() -> None:
            seconds = round(time.monotonic() - began)
            memory["all of its own"].append((seconds, round(served.megabytes, 1)))
            memory["anonymous"].append((seconds, round(served.anonymous, 1)))
            load.append(os.getloadavg()[0])

        times, counts = asyncio.run(crowd(served.url, 10, EDITORS, 2.0, seconds, note))
    return {
        "answers": dict(counts), "milliseconds": figures(times), "memory": memory,
        "flatness": {kind: flatness(values) for kind, values in memory.items()},
        "load": [round(min(load), 1), round(max(load), 1)],
    }  # fmt: skip


def flatness(memory: Memory) -> dict[str, float]:
    """Compare the second quarter of a run with the last; the first fills what is kept."""
    quarter = math.ceil(len(memory) / 4)
    values = [megabytes for _, megabytes in memory]
    second, last = np.mean(values[quarter : 2 * quarter]), np.mean(values[-quarter:])
    return {
        "second quarter MB": round(float(second), 1), "last quarter MB": round(float(last), 1),
        "growth %": round(100 * float(last / second - 1), 1), "most MB": max(values),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("make", "serve", "load", "soak"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, help="120 for load, 1200 for soak, if unset")
    asked = parser.parse_args()
    if asked.what in ("make", "serve"):
        {"make": make, "serve": serve}[asked.what](asked.folder)
        return
    run, usual = (load, 120.0) if asked.what == "load" else (soak, 1200.0)
    found = {"machine": machine.about(), **run(asked.folder, asked.seconds or usual)}
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    RESULTS.write_text(json.dumps({**known, asked.what: found}, indent=1) + "\n")
    print(json.dumps({name: part for name, part in found.items() if name != "memory"}, indent=1))


if __name__ == "__main__":
    main()
