"""How fast is a long input on screen, and in how much memory?

    python -m benchmarks.long_inputs FOLDER

makes atlases of one head with 2,048, 8,192 and 32,768 tokens in FOLDER and asks for what the page
asks for, each length in a process of its own, with the log-sum-exp of each row stored and without.
Seconds are those of a clock; CPU seconds do not depend on what else the machine does, and half of
them are what two free cores need.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import attention_atlas as aa
from attention_atlas.models.inputs import Input
from attention_atlas.page.live.answers import Answers, make_answers
from attention_atlas.page.wire.packing import unpack
from attention_atlas.record.write.tables import input_row, input_table, token_table
from attention_atlas.store.form import CAUSAL
from attention_atlas.store.manifest import Layer, LayerReceipt, Receipt, Tower
from attention_atlas.store.parts import Contents
from attention_atlas.store.shard import Block, Packer
from attention_atlas.store.write import Writer
from benchmarks import machine

LENGTHS = (2_048, 8_192, 32_768)
WIDTH, TILES = 64, 200
Floats = npt.NDArray[np.float32]


def vectors(n: int) -> tuple[Floats, Floats]:
    """Make queries and keys (n, 64): the head looks at the first token, near by and at topics."""
    dice = np.random.default_rng(0)
    turn = np.arange(n)[:, None] * 10_000.0 ** -(np.arange(12) / 12)
    place = np.concatenate([np.cos(turn), np.sin(turn)], 1)  # (n, 24)
    topic = dice.normal(size=(40, 32))[np.repeat(dice.integers(0, 40, n // 64 + 1), 64)[:n]]
    noise = dice.normal(size=(2, n, 64)) * 0.6
    query = np.concatenate([2.5 * place, topic, np.full((n, 1), 8.0), np.zeros((n, 7))], 1)
    key = np.concatenate([2.5 * place, topic, np.zeros((n, 8))], 1)
    key[0, 56] = 11  # the first token is a sink
    query, key = (query + noise[0]).astype(np.float16), (key + noise[1]).astype(np.float16)
    return query.astype(np.float32), key.astype(np.float32)


def log_sums(query: Floats, key: Floats) -> Floats:
    """Return the log-sum-exp of each row, 256 rows at a time."""
    sums = np.empty(len(query), np.float32)
    for top in range(0, len(query), 256):
        logits = query[top : top + 256] @ key[: top + 256].T * np.float32(WIDTH**-0.5)
        logits[:, top:][np.triu_indices(len(logits), 1)] = -np.inf
        largest = logits.max(1)
        sums[top : top + 256] = largest + np.log(np.exp(logits - largest[:, None]).sum(1))
    return sums


def make(folder: Path, n: int, stored: bool) -> None:
    """Write the atlas of one input through the store's own writer."""
    query, key = vectors(n)
    stem = "decoder.L0"
    tensors: dict[str, Any] = {
        f"{stem}.query": query[None].astype(np.float16),
        f"{stem}.key": key[None].astype(np.float16),
        f"{stem}.blocks": Packer().blocks([Block(0, n, n, CAUSAL)]),
    }
    if stored:
        tensors[f"{stem}.lse"] = log_sums(query, key)[None]
    texts = [f"Ġw{(i * 7919) % 4001}" for i in range(n)]
    none = [-1] * n
    columns = {
        "text": texts, "id": none, "special": [False] * n, "start": none, "end": none,
        "segment": [0] * n, "word": list(range(n)), "row": none, "column": none,
    }  # fmt: skip
    given = Input("text", text="".join(texts).replace("Ġ", " "), columns={})
    row = input_row(0, given, boundary=-1, prompt=-1, truncated=False, images=[])
    tables = {
        "inputs": input_table([row], []),
        "tokens": token_table([(0, "text", columns)]),
    }
    writer = Writer(folder, "long", {}, overwrite=False)
    writer.add(0, Contents(tensors, tables))
    layer = Layer(0, 1, 1, WIDTH, WIDTH, WIDTH**-0.5, None, False, "text", "text", "")
    writer.finish(
        model="long", revision=None, model_class="Long", streams=("text",), keep=("query", "key"),
        towers=(Tower("decoder", "causal", 1, (layer,)),),
        receipt=Receipt("named", "float32", 1e-5, (LayerReceipt("decoder", 0, 0, 0, 0, True),)),
    )  # fmt: skip


def timed(work: Callable[[], Any]) -> tuple[float, float]:
    """Return the seconds and the CPU seconds of some work."""
    start, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - start, time.process_time() - cpu


def measure(folder: Path) -> dict[str, Any]:
    """Ask for everything that the page asks for, once, in its order."""
    (answers,) = make_answers([aa.open(folder)])
    n = len(answers.session.subject.tokens(0))
    answers.packet("about")
    answers.packet("rows/0/L0H0/0-0")  # the file is opened and checked
    before = memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    result: dict[str, Any] = {"tokens": n, "input": timed(lambda: answers.packet("input/0"))}
    result["input_bytes"] = len(answers.packet("input/0")[0])
    result["first"] = timed(lambda: answers.packet("overview/0/L0H0/1"))
    result["first_tile"] = timed(lambda: answers.packet(f"tile/0/L0H0/0/{n // 256 - 1}/0"))
    result["exact"] = timed(lambda: answers.packet("overview/0/L0H0/0"))
    kept = unpack(answers.packet("overview/0/L0H0/0")[0])
    result["kept"] = [round(float(share), 3) for share in kept["kept"]]
    result["tiles"] = tile_times(answers, n, kept["level"])
    result["without"] = timed(lambda: answers.packet("overview/0/L0H0/1/sinks"))
    result["without_tile"] = timed(lambda: answers.packet("tile/0/L0H0/1/0/0/sinks"))
    result["window"] = timed(lambda: answers.packet(f"edges/0/decoder/0/{n - 512}-{n - 1}/0-511"))
    result["memory_mb"] = memory("VmHWM") - before
    return result


def memory(what: str) -> float:
    """Return VmRSS (now) or VmHWM (the peak) of this process in megabytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(what))


def tile_times(answers: Answers, n: int, top: int) -> dict[str, list[float]]:
    """Return median and 95th percentile of random tiles by level: clock, then CPU seconds."""
    dice = np.random.default_rng(1)
    times: dict[str, list[float]] = {}
    for level in range(top + 1):
        side = -(-n // (256 << level))
        rows = dice.integers(0, side, TILES)
        places = sorted({(int(row), int(dice.integers(0, row + 1))) for row in rows})
        paths = [f"tile/0/L0H0/{level}/{row}/{column}" for row, column in places]
        found = np.array([timed(partial(answers.packet, path)) for path in paths])
        times[str(level)] = [*np.quantile(found[:, 0], [0.5, 0.95]), float(np.median(found[:, 1]))]
    return times


def report(rows: list[dict[str, Any]]) -> str:
    """Return the table of all lengths."""
    lines = [
        "| tokens | log-sum-exp | input packet | first overview | exact overview | tile: median | "
        "tile: 95th percentile | memory |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        levels = row["tiles"].values()
        median, late = (max(level[at] for level in levels) * 1e3 for at in (0, 1))
        lines.append(
            f"| {row['tokens']:,} | {'stored' if row['stored'] else 'computed'} "
            f"| {row['input_bytes'] / 1e3:,.0f} kB, {row['input'][0] * 1e3:.0f} ms "
            f"| {row['first'][0] * 1e3:.0f} ms ({row['first'][1] * 1e3:.0f} CPU ms) "
            f"| {row['exact'][0]:.2f} s ({row['exact'][1]:.2f} CPU s) "
            f"| {median:.1f} ms | {late:.1f} ms | {row['memory_mb']:.0f} MB |"
        )
    return "\n".join(lines)


def plot(rows: list[dict[str, Any]]) -> str:
    """Draw CPU seconds against tokens, both logarithmic, with the log-sum-exp stored."""
    stored = [row for row in rows if row["stored"]]
    curves = {
        "exact overview": ("#2B7BBA", [row["exact"][1] for row in stored]),
        "first overview": ("#5FB96C", [row["first"][1] for row in stored]),
        "slowest level of tiles": (
            "#E1812C", [max(level[2] for level in row["tiles"].values()) for row in stored],
        ),
    }  # fmt: skip

    def x(n: float) -> float:
        return 60 + 95 * math.log2(n / LENGTHS[0])

    def y(seconds: float) -> float:
        return 40 + 50 * math.log10(10 / seconds)

    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" width="600" height="276" font-size="12" '
        'font-family="sans-serif"><rect width="600" height="276" fill="white"/>'
    ]
    parts += [f'<text x="{x(n):.0f}" y="264" text-anchor="middle">{n:,}</text>' for n in LENGTHS]
    parts += [
        f'<line x1="60" x2="440" y1="{y(s):.0f}" y2="{y(s):.0f}" stroke="#DDD"/>'
        f'<text x="52" y="{y(s) + 4:.0f}" text-anchor="end">{s:g} s</text>'
        for s in (0.001, 0.01, 0.1, 1, 10)
    ]
    for name, (colour, seconds) in curves.items():
        places = [(x(n), y(s)) for n, s in zip(LENGTHS, seconds, strict=True)]
        line = " ".join(f"{across:.1f},{down:.1f}" for across, down in places)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        across, down = places[-1]
        parts.append(f'<text x="{across + 8:.0f}" y="{down + 4:.0f}" fill="{colour}">{name}</text>')
    parts.append('<text x="60" y="20">CPU seconds of one head against tokens</text></svg>')
    return "\n".join(parts)


def main() -> int:
    """Measure every length in a process of its own and print the table."""
    parser = argparse.ArgumentParser(description="Measure tiles of long inputs.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--one", action="store_true", help="measure the atlas in FOLDER, as JSON")
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(measure(asked.folder)))
        return 0
    rows = []
    for n in LENGTHS:
        for stored in (True, False):
            folder = asked.folder / f"{n}-{'stored' if stored else 'computed'}.atlas"
            if not folder.exists():
                make(folder, n, stored)
            command = [sys.executable, "-m", "benchmarks.long_inputs", str(folder), "--one"]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            rows.append({**json.loads(done.stdout), "stored": stored, "load": os.getloadavg()[0]})
            print(json.dumps(rows[-1]), file=sys.stderr)
    print(machine.about(), "\n")
    print(report(rows))
    Path(__file__).with_suffix(".svg").write_text(plot(rows) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
