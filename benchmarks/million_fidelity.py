"""How true are placed tokens, beside a layout of all of them?

    python -m benchmarks.million_fidelity TEXT

MiniLM over the words of a text file: heads are laid out whole; then 5,000 points are laid out and
the others placed, by the mesh, and by simpler ways. Trust and kept are of 300 placed points among
all points of the head.
"""

import argparse
import json
import time
from pathlib import Path

import torch
from torch import Tensor

from attention_atlas.layout.fidelity import neighbourhood
from attention_atlas.layout.fuzzy import memberships
from attention_atlas.layout.joint import join
from attention_atlas.layout.methods import METHODS, lay_out
from attention_atlas.layout.neighbours import as_points, find_neighbours
from attention_atlas.layout.place import Known, place
from benchmarks.layout_data import text_vectors
from benchmarks.machine import about

HEADS, TOKENS, SAMPLE, ROWS, TOGETHER = (3, 31), 16_000, 5000, 300, 4096


def placed_in_blocks(new: Tensor, known: Known, method: str) -> Tensor:
    blocks = torch.split(new, TOGETHER, 1)
    return torch.cat([place(block, known, method) for block in blocks], 1)


def nearest(new: Tensor, known: Known, method: str) -> Tensor:
    index = find_neighbours(new, 1, known.metric, among=known.points).index
    return known.places.gather(1, index.expand(-1, -1, known.places.shape[2]))


def weighted_mean(new: Tensor, known: Known, method: str) -> Tensor:
    near = find_neighbours(new, 15, known.metric, among=known.points)
    weight = memberships(near)[..., None]
    dims = known.places.shape[2]
    places = known.places.gather(1, near.index.flatten(1)[..., None].expand(-1, -1, dims))
    return (weight * places.view(*near.index.shape, dims)).sum(2) / weight.sum(2)


WAYS = {"mesh": placed_in_blocks, "nearest": nearest, "weighted mean": weighted_mean}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("text", type=Path)
    torch.set_num_threads(1)
    queries, keys, _ = text_vectors(parser.parse_args().text, TOKENS)
    queries, keys = queries[list(HEADS)], keys[list(HEADS)]
    joint = join(queries, keys, "scale")
    points = as_points(joint.points(queries, keys), joint.metric)
    order = torch.randperm(points.shape[1], generator=torch.Generator().manual_seed(0))
    points = points[:, order]
    rows = torch.arange(SAMPLE, SAMPLE + ROWS)
    print(json.dumps({"machine": about(), "points": points.shape[1]}))

    def say(method: str, way: str, places: Tensor, seconds: float) -> None:
        trust, kept = neighbourhood(points, places, rows)
        figures = {"trust": trust.tolist(), "kept": kept.tolist(), "cpu seconds": seconds}
        print(json.dumps({"method": method, "way": way, **figures}), flush=True)

    for method in ("umap", "tsne"):
        k = METHODS[method].neighbours
        began = time.process_time()
        whole = lay_out(points, method, 2, find_neighbours(points, k))
        say(method, "all laid out", whole, time.process_time() - began)
        sample = points[:, :SAMPLE]
        base = lay_out(sample, method, 2, find_neighbours(sample, k))
        known = Known(sample, base, "cosine", often=True)
        for way, run in WAYS.items():
            began = time.process_time()
            new = run(points[:, SAMPLE:], known, method)
            say(method, way, torch.cat([base, new], 1), time.process_time() - began)


if __name__ == "__main__":
    main()
