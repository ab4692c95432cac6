"""How long do all six maps of 144 heads take on one CUDA device when they are made of attention?

    python -m benchmarks.attention_cuda vectors.npz [--heads 144] [--tokens 5000] [--json out.json]

`vectors.npz` holds q and k (heads, tokens, width), input and special (tokens), causal and scale of
a model. To reach the heads and tokens asked for, tokens of further heads follow as further
inputs, and heads are repeated, each time turned by another rotation, which changes no dot product.
The paper's way runs in turns with ours; the first round warms up and compiles.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from attention_atlas.layout.attended import AttentionGraph, attention_graph
from attention_atlas.layout.fidelity import Dots, TokenInputs, attention_kept
from attention_atlas.layout.joint import join
from attention_atlas.layout.looks import find_looks
from attention_atlas.layout.methods import METHODS
from attention_atlas.layout.neighbours import Neighbours, as_points, find_neighbours
from attention_atlas.layout.sight import MapTokens, Sight, plain_sight


def clock() -> float:
    torch.cuda.synchronize()
    return time.perf_counter()


def material(path: Path, heads: int, tokens: int) -> tuple[Tensor, Tensor, Sight]:
    stored = np.load(path)
    given, length, width = stored["q"].shape
    device = torch.device("cuda")
    times = -(-tokens // length)
    inputs = np.concatenate([stored["input"] + 10_000 * part for part in range(times)])[:tokens]
    special = np.tile(stored["special"], times)[:tokens].astype(bool)
    inputs = inputs.astype(np.int64)
    place = np.arange(tokens) - np.searchsorted(inputs, inputs)
    points = MapTokens(inputs, inputs, place, place, special, special)
    numbers = torch.Generator().manual_seed(0)
    sides: list[list[Tensor]] = [[], []]
    for head in range(heads):
        turn = torch.linalg.qr(torch.randn(width, width, generator=numbers)).Q
        for side, name in zip(sides, "qk", strict=True):
            rows = [stored[name][(head + part) % given] for part in range(times)]
            side.append(torch.from_numpy(np.concatenate(rows)[:tokens]).float() @ turn)
    sight = plain_sight(points, bool(stored["causal"]), device, float(stored["scale"]))
    return torch.stack(sides[0]).to(device), torch.stack(sides[1]).to(device), sight


def six_maps(queries: Tensor, keys: Tensor, sight: Sight, joint: str) -> dict[str, float]:
    times = {}
    begin = clock()
    joined = join(queries, keys, joint)
    points = as_points(joined.points(queries, keys), joined.metric)
    near: Neighbours | AttentionGraph
    if joint == "attention":
        every = slice(0, len(queries))
        looks = find_looks(queries, keys, sight, every)
        near = attention_graph(queries, keys, looks, [(sight, every, every)])
    else:
        near = find_neighbours(points, max(method.neighbours for method in METHODS.values()))
    times["ties"] = clock() - begin
    maps = {}
    for dims in (2, 3):
        for name, method in METHODS.items():
            start = clock()
            maps[f"{name}-{dims}d"] = method.code.lay_out(points, dims, near, 0)
            times[f"{name}-{dims}d"] = clock() - start
    times["all"] = clock() - begin
    dots = Dots(queries, keys, TokenInputs(sight.query_inputs, sight.key_inputs))
    every = slice(0, len(queries))
    for name, places in maps.items():
        near_keys, visible = attention_kept(dots, [(sight, every, every)], places)
        times[f"{name} strongest"] = float(near_keys.median())
        times[f"{name} visible"] = float(visible.median())
    return times


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("vectors", type=Path)
    parser.add_argument("--heads", type=int, default=144)
    parser.add_argument("--tokens", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    queries, keys, sight = material(asked.vectors, asked.heads, asked.tokens)
    rounds = []
    for number in range(asked.rounds):
        for joint in ("scale", "attention"):
            found = six_maps(queries, keys, sight, joint)
            rounds.append({"round": number, "joint": joint, **found})
            print(json.dumps({name: round(value, 3) if isinstance(value, float) else value
                              for name, value in rounds[-1].items()}), flush=True)  # fmt: skip
    print("peak GiB", torch.cuda.max_memory_allocated() / 2**30, torch.cuda.get_device_name())
    if asked.json:
        asked.json.write_text(json.dumps(rounds, indent=1) + "\n")


if __name__ == "__main__":
    main()
