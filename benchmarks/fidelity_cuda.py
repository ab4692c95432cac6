"""Does near on a map mean attended? Every head of a model on a GPU, in seconds.

    python -m benchmarks.fidelity_cuda pack ATLAS FILE.npz [--tokens 2050]
    python -m benchmarks.fidelity_cuda run FOLDER [--json rows.json] [--seeds 2]

`pack` writes the queries and keys of an atlas in half precision, of as many inputs as make so many
tokens, so that a GPU on another machine can have them; a model in several files (NAME-a.npz …) is
joined by layers. `run` lays out every head of every model in FOLDER by UMAP in 2-D, the paper's way
and made of attention, and prints medians over heads of the figures that the product stores. Models
without a bias of their logits, causal or not, whose layers all mask alike.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attention_atlas.layout.attended import attention_graph
from attention_atlas.layout.fidelity import Dots, TokenInputs, fidelity
from attention_atlas.layout.joint import join
from attention_atlas.layout.looks import find_looks
from attention_atlas.layout.methods import METHODS, lay_out
from attention_atlas.layout.neighbours import as_points, find_neighbours
from attention_atlas.layout.sight import MapTokens, Sight, plain_sight

SHOWN = ("strongest", "visible", "overlap", "like")
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def pack(path: Path, file: Path, tokens: int) -> None:
    """Write what `run` needs of an atlas of one tower."""
    import attention_atlas as aa

    atlas = aa.open(path)
    table = atlas.tokens()
    ends = np.cumsum(table.groupby("input").size().to_numpy())
    count = int(ends[min(int(np.searchsorted(ends, tokens)), len(ends) - 1)])
    queries, keys = [], []
    for layer in atlas.towers[0].layers:
        names = [f"L{layer.layer}H{head}" for head in range(layer.heads)]
        both = [atlas.layer_vectors(what, names, np.arange(count)) for what in ("query", "key")]
        queries.append(both[0].astype(np.float16))
        keys.append(both[1][:: layer.heads // layer.groups].astype(np.float16))
    first = atlas.weights(input=0, head="L0H0")
    np.savez(
        file, q=np.stack(queries), k=np.stack(keys),
        input=table["input"].to_numpy(np.int64)[:count],
        special=table["special"].to_numpy(bool)[:count],
        causal=not first[0, 1:].any(), scale=atlas.towers[0].layers[0].scale,
    )  # fmt: skip


def read(files: list[Path]) -> tuple[Tensor, Tensor, Sight]:
    """Read queries and keys (heads, tokens, width) of all layers, and what queries see."""
    parts = [np.load(file) for file in files]
    queries = np.concatenate([part["q"] for part in parts])  # (L, H, tokens, width)
    keys = np.concatenate([part["k"] for part in parts])  # (L, G, tokens, width)
    keys = np.repeat(keys, queries.shape[1] // keys.shape[1], 1)
    inputs, special = parts[0]["input"], parts[0]["special"]
    place = np.arange(len(inputs)) - np.searchsorted(inputs, inputs)
    tokens = MapTokens(inputs, inputs, place, place, special, special)
    sight = plain_sight(tokens, bool(parts[0]["causal"]), DEVICE, float(parts[0]["scale"]))
    sides = [torch.from_numpy(of).flatten(0, 1).to(DEVICE).float() for of in (queries, keys)]
    return sides[0], sides[1], sight


def figures(files: list[Path], joint: str, seed: int) -> dict[str, list[float]]:
    """Lay out all heads; returns each figure for every head."""
    queries, keys, sight = read(files)
    every = slice(0, len(queries))
    sights = [(sight, every, every)]
    joined = join(queries, keys, joint)
    points = as_points(joined.points(queries, keys), joined.metric)
    near: Any
    if joint == "attention":
        near = attention_graph(queries, keys, find_looks(queries, keys, sight, every), sights)
    else:
        near = find_neighbours(points, METHODS["umap"].neighbours)
    places = lay_out(points, "umap", 2, near, seed)
    dots = Dots(queries, keys, TokenInputs(sight.query_inputs, sight.key_inputs))
    found = fidelity(points, dots, sights, places, seed)
    names = ["chance", *(f"map.{name}" for name in SHOWN)]
    return {name: [round(value, 4) for value in found[name].tolist()] for name in names}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("pack", "run"))
    parser.add_argument("paths", type=Path, nargs="+")
    parser.add_argument("--tokens", type=int, default=2050)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    if asked.what == "pack":
        pack(asked.paths[0], asked.paths[1], asked.tokens)
        return
    models: dict[str, list[Path]] = {}
    for file in sorted(asked.paths[0].glob("*.npz")):
        models.setdefault(file.stem.split("-")[0], []).append(file)
    rows = []
    for name, files in models.items():
        for joint, seed in [("scale", 0), *(("attention", seed) for seed in range(asked.seeds))]:
            found = figures(files, joint, seed)
            rows.append({"model": name, "joint": joint, "seed": seed, **found})
            medians = {what: round(float(np.nanmedian(found[f"map.{what}"])), 3) for what in SHOWN}
            gain = np.array(found["map.strongest"]) - np.array(found["chance"]) >= 0.3
            about = f"{name} {joint} {seed}: {len(gain)} heads, gain {gain.mean():.0%}"
            print(about, medians, flush=True)
    if asked.json:
        asked.json.write_text(json.dumps(rows) + "\n")


if __name__ == "__main__":
    main()
