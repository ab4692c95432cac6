"""What does `measure` cost as inputs grow, and as heads do?

    python -m benchmarks.measure_size [--before OTHER/src] [--longest 8192]

Atlases of SmolLM2's shape (heads of width 64, nine to three groups, causal) with random vectors and
one input each, written here. Each is measured in a process of its own, this checkout and another
one in turns. Seconds on the clock and of the processors (other work on the machine lengthens the
first), and memory of its own at the most, over the process before it opened the atlas.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.machine import about

RESULTS = Path(__file__).parent / "measure_size.md"
TOKENS, LAYERS = (512, 1024, 2048, 4096, 8192), 2
HEADS, AT = (9, 18, 36, 72), 1024  # heads of a layer, at so many tokens
SMOL = 30  # layers of SmolLM2 135M
MOST_BEFORE = 2048  # tokens; the other checkout takes minutes beyond


def make_atlas(folder: Path, tokens: int, heads: int) -> None:
    """Write an atlas of one input with random vectors."""
    from attention_atlas.store.form import CAUSAL
    from attention_atlas.store.manifest import Layer, LayerReceipt, Receipt, Tower
    from attention_atlas.store.parts import Contents
    from attention_atlas.store.shard import Block, Packer
    from attention_atlas.store.write import Writer

    dice, packer = np.random.default_rng(tokens), Packer()
    blocks = packer.blocks([Block(0, tokens, tokens, CAUSAL)])
    arrays: dict[str, np.ndarray] = dict(packer.tensors)
    layers = []
    for number in range(LAYERS):
        layers.append(Layer(number, heads, heads // 3, 64, 64, 0.125, None, False, "text", "text",
                            f"layers.{number}"))  # fmt: skip
        arrays[f"decoder.L{number}.blocks"] = blocks
        for name, count in (("query", heads), ("key", heads // 3), ("value", heads // 3)):
            drawn = dice.standard_normal((count, tokens, 64), np.float32)
            arrays[f"decoder.L{number}.{name}"] = (1.5 * drawn).astype(np.float16)
    none = np.full(tokens, -1)
    table = pa.table({
        "token": np.arange(tokens), "input": np.zeros(tokens, int), "stream": ["text"] * tokens,
        "position": np.arange(tokens), "text": [["a", ",", "b", "c"][i % 4] for i in range(tokens)],
        "id": dice.integers(0, 5000, tokens), "special": np.arange(tokens) == 0, "start": none,
        "end": none, "segment": none, "word": none, "row": none, "column": none,
    })  # fmt: skip
    inputs = pa.table({
        "input": [0], "kind": ["text"], "text": ["random"], "second": [None], "source": [None],
        "boundary": [-1], "prompt": [-1], "truncated": [False], "images": [[]],
    })  # fmt: skip
    proof = tuple(LayerReceipt("decoder", number, 0, 0, 0, True) for number in range(LAYERS))
    writer = Writer(folder, "made", {}, False)
    writer.add(0, Contents(arrays, {"inputs": inputs, "tokens": table}))
    writer.finish(
        model="random", revision=None, model_class="none", streams=("text",),
        towers=(Tower("decoder", "causal", LAYERS, tuple(layers)),),
        keep=("query", "key", "value"), receipt=Receipt("named", "float32", 1e-5, proof),
    )  # fmt: skip


def one(folder: Path) -> None:
    """Measure a folder; prints seconds on the clock and of processors, and MiB of its own."""
    import attention_atlas as aa
    from attention_atlas.measure.run import measure_atlas

    start, own = _own(), [0.0]
    threading.Thread(target=_watch, args=(own,), daemon=True).start()
    clock, processors = time.perf_counter(), time.process_time()
    measure_atlas(aa.open(folder), again=True, progress=False, keep=False)
    spent = time.perf_counter() - clock, time.process_time() - processors
    print(json.dumps([*spent, own[0] - start]))


def _watch(own: list[float]) -> None:
    while True:
        own[0] = max(own[0], _own())
        time.sleep(0.005)


def _own() -> float:
    """MiB of the process's own: mapped files do not count."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon"))


def measured(folder: Path, source: Path) -> list[float]:
    """Measure a folder with the code in `source`, in a process of its own."""
    command = [sys.executable, str(Path(__file__).resolve()), "--one", str(folder)]
    root = Path(__file__).resolve().parent.parent
    path = os.pathsep.join([str(source), str(root)])
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": path}
    )
    return [float(number) for number in json.loads(done.stdout.splitlines()[-1])]


def row(tokens: int, heads: int, before: Path | None) -> str:
    """Measure one size, before and after in turns; returns a row of the table."""
    here = Path(__file__).resolve().parent.parent / "src"
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "x.atlas"
        make_atlas(folder, tokens, heads)
        old = None if before is None or tokens > MOST_BEFORE else measured(folder, before)
        new = measured(folder, here)
    weights = LAYERS * heads * tokens * tokens
    cells = [f"{tokens:,}", str(heads)]
    for figures in (old, new):
        if figures is None:
            cells += ["", "", ""]
            continue
        clock, processors, most = figures
        cells += [f"{clock:.1f} / {processors:.1f}", f"{1e9 * processors / weights:.0f}"]
        cells += [f"{most:.0f}"]
    whole = SMOL / LAYERS * new[1] / 2
    cells += [f"{whole:.0f} s" if heads == 9 else ""]
    print(cells, flush=True)
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--one", type=Path)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--longest", type=int, default=TOKENS[-1])
    asked = parser.parse_args()
    if asked.one:
        one(asked.one)
        return
    sizes = [(tokens, 9) for tokens in TOKENS if tokens <= asked.longest]
    sizes += [(AT, heads) for heads in HEADS[1:]]
    rows = [row(tokens, heads, asked.before) for tokens, heads in sizes]
    head = [
        "| tokens | heads of a layer | before: s, clock / processors | ns a weight | MiB "
        "| after: s, clock / processors | ns a weight | MiB | SmolLM2 on two free cores |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    words = (
        f"{LAYERS} layers, one input. A weight is one of heads × tokens², seen or not, and its "
        "nanoseconds are those of the processors, all added up. Above 4,096 tokens 4,096 rows are "
        f"drawn. The last column is {SMOL} layers of nine heads at the same cost a layer, divided "
        "by two cores."
    )
    page = "\n".join(["# What measure costs at size", "", about(), "", words, "", *head, *rows])
    RESULTS.write_text(page + "\n")
    print(page)


if __name__ == "__main__":
    main()
