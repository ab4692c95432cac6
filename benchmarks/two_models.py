"""Do two live models in one process keep apart, for as long as a minute and from a fresh start?

    python -m benchmarks.two_models                a minute of readings in two threads
    python -m benchmarks.two_models --servers 16   that many fresh processes, each a server of two
                                                   models that is given a text for each at once

A reading is a capture of one text as a served page makes it. It counts as equal if the way and
every weight of every head are those of a lone reading, bit for bit.
"""

import argparse
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Barrier
from typing import Any

import numpy as np

import attention_atlas as aa
from attention_atlas.page.live.answers import make_answers
from attention_atlas.page.live.model import LiveModel
from attention_atlas.page.wire.packing import unpack
from benchmarks.machine import about

MODELS = ("builtin:gpt", "builtin:bert")
TEXTS = (
    "The old doctor walks home because it is late.",
    "A cat sleeps on the warm stone near the door.",
    "Who sold the bridge, and to whom was it sold?",
)
Reading = tuple[str, list[np.ndarray[Any, Any]]]


def atlases(folder: Path) -> list[aa.Atlas]:
    """One atlas of each model, for the options of a reading."""
    return [
        aa.capture(name, [TEXTS[0]], path=folder / f"{number}.atlas", progress=False)
        for number, name in enumerate(MODELS)
    ]


def reading(model: LiveModel, like: aa.Atlas, text: str) -> Reading:
    """The way that was taken and all weights."""
    atlas = model.read(like, text)
    (tower,) = atlas.towers
    return atlas.receipt.how, [atlas.layer_weights(0, one.layer) for one in tower.layers]


def is_equal(mine: Reading, lone: Reading) -> bool:
    return mine[0] == lone[0] and all(
        np.array_equal(here, there) for here, there in zip(mine[1], lone[1], strict=True)
    )


def minute(seconds: float) -> str:
    """Read in two threads; gives how many readings were equal, differed and failed."""
    with TemporaryDirectory() as folder:
        likes, models = atlases(Path(folder)), [LiveModel(name) for name in MODELS]
        alone = [
            [reading(model, like, text) for text in TEXTS]
            for model, like in zip(models, likes, strict=True)
        ]
        start = Barrier(len(models))

        def read(which: int) -> dict[str, int]:
            counts = {"equal": 0, "different": 0, "failed": 0}
            start.wait()
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                number = sum(counts.values()) % len(TEXTS)
                try:
                    found = reading(models[which], likes[which], TEXTS[number])
                    counts["equal" if is_equal(found, alone[which][number]) else "different"] += 1
                except Exception as problem:
                    counts["failed"] += 1
                    print(f"{MODELS[which]}: {type(problem).__name__}: {problem}", file=sys.stderr)
            return counts

        with ThreadPoolExecutor(len(models)) as threads:
            counted = list(threads.map(read, range(len(models))))
    return "\n".join(f"{name}: {counts}" for name, counts in zip(MODELS, counted, strict=True))


def one_server(folder: Path) -> int:
    """Add a text to each atlas of a server at once, models not loaded yet; gives the failures."""
    opened = [aa.open(path) for path in sorted(folder.iterdir())]
    answers = make_answers(opened, [LiveModel(name) for name in MODELS])
    start = Barrier(len(answers))

    def add(which: int) -> bool:
        start.wait()
        packet, done = answers[which].perform("add", {"text": TEXTS[1]})
        if not done:
            print(unpack(packet)["error"], file=sys.stderr)
        return done

    with ThreadPoolExecutor(len(answers)) as threads:
        return list(threads.map(add, range(len(answers)))).count(False)


def servers(count: int) -> str:
    """Start fresh processes one after the other; gives how many answered every text."""
    with TemporaryDirectory() as folder:
        atlases(Path(folder))
        command = [sys.executable, "-m", "benchmarks.two_models", "--folder", folder]
        good = sum(subprocess.run(command, check=False).returncode == 0 for _ in range(count))
    return f"{good} of {count} fresh servers answered both texts"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--servers", type=int, default=0)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)  # one fresh server
    given = parser.parse_args()
    if given.folder:
        sys.exit(one_server(given.folder))
    print(about())
    print(servers(given.servers) if given.servers else minute(given.seconds))


if __name__ == "__main__":
    main()
