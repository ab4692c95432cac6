"""What do checksums cost when an atlas is opened and read?

    python -m benchmarks.seals [FOLDER [OTHER_SOURCE]]

Makes an atlas of demo size and one of a gigabyte in FOLDER (made vectors, the real store), unless
they are there, and times opening, the first row of one head, and all files of vectors, each time in
a new process. Times are those of the processor, so that other programs disturb them less. With
OTHER_SOURCE, the src folder of another checkout, both run in turns; the folder must then be of the
older one of the two.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

SIZES = {"demo size, 40 MB": (4, 10), "1 GB": (8, 128)}  # shards, MB each
WIDTH, HEADS = 64, 16
REPEATS = 5
READ = """
import json, sys, time
from attention_atlas.store.reader import StoredAtlas
times = {}
start = time.process_time()
atlas = StoredAtlas.open(sys.argv[1])
times["open"] = time.process_time() - start
start = time.process_time()
atlas.weights(0, "L0H0", rows=[5])
times["first row"] = time.process_time() - start
start = time.process_time()
for shard in range(len(atlas.manifest.shards)):
    atlas.shard(shard)
times["all files verified"] = time.process_time() - start
start = time.process_time()
for _ in range(50):
    atlas.weights(0, "L0H0")
times["weights of a head, 50 times"] = time.process_time() - start
start = time.process_time()
atlas.queries("L0H3")
times["queries of a head, all files"] = time.process_time() - start
print(json.dumps(times))
"""


def make(folder: Path, shards: int, megabytes: int) -> None:
    """Write an atlas of so many files with random vectors."""
    import numpy as np

    from attention_atlas.models.inputs import Input
    from attention_atlas.record.write.tables import input_row, input_table, token_table
    from attention_atlas.store.form import CAUSAL
    from attention_atlas.store.manifest import Layer, LayerReceipt, Receipt, Tower
    from attention_atlas.store.parts import Contents
    from attention_atlas.store.shard import Block, Packer
    from attention_atlas.store.write import Writer

    luck = np.random.default_rng(0)
    given = Input("text", text="w")
    length = 500
    inputs = max(1, megabytes * 10**6 // (2 * 2 * HEADS * WIDTH * length))
    writer = Writer(folder, "made", {}, overwrite=False)
    for shard in range(shards):
        numbers = range(shard * inputs, (shard + 1) * inputs)
        packer = Packer()
        n = inputs * length
        vectors = luck.standard_normal((2, HEADS, n, WIDTH), np.float32).astype(np.float16)
        tensors = {
            "decoder.L0.blocks": packer.blocks([Block(i, length, length, CAUSAL) for i in numbers]),
            "decoder.L0.query": vectors[0], "decoder.L0.key": vectors[1],
        }  # fmt: skip
        columns = {
            "text": ["w"] * length, "special": [False] * length,
            **{name: [-1] * length for name in ("id", "start", "end", "segment", "word", "row",
                                                "column")},
        }  # fmt: skip
        rows = [
            input_row(i, given, boundary=-1, prompt=-1, truncated=False, images=[]) for i in numbers
        ]
        tables = {
            "inputs": input_table(rows, []),
            "tokens": token_table([(i, "text", columns) for i in numbers]),
        }
        writer.add(shard, Contents(tensors, tables))
    layer = Layer(0, HEADS, HEADS, WIDTH, WIDTH, WIDTH**-0.5, None, False, "text", "text", "")
    receipt = Receipt("named", "float32", 1e-5, (LayerReceipt("decoder", 0, 0, 0, 0, True),))
    writer.finish(
        model="made", revision=None, model_class="Made", streams=("text",), keep=("query", "key"),
        towers=(Tower("decoder", "causal", 1, (layer,)),), receipt=receipt,
    )  # fmt: skip


def read(folder: Path, source: str) -> dict[str, float]:
    """Time reading an atlas by the code in a src folder, in a process of its own."""
    command = [sys.executable, "-c", READ, str(folder)]
    environment = {**os.environ, **({"PYTHONPATH": source} if source else {})}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    times: dict[str, float] = json.loads(done.stdout)
    return times


def main() -> None:
    home = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
    sources = ["", *sys.argv[2:]]
    for name, (shards, megabytes) in SIZES.items():
        folder = home / f"{shards * megabytes}.atlas"
        if not folder.exists():
            make(folder, shards, megabytes)
        runs = [[read(folder, source) for source in sources] for _ in range(REPEATS)]
        for what in runs[0][0]:
            medians = [
                1000 * statistics.median(run[place][what] for run in runs)
                for place in range(len(sources))
            ]
            print(f"| {name} | {what} | " + " | ".join(f"{ms:.1f}" for ms in medians) + " |")


if __name__ == "__main__":
    main()
