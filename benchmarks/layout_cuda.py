"""How long do all six maps of 144 heads take on one CUDA device, and where does the time go?

    python -m benchmarks.layout_cuda vectors.pt [--heads 144] [--json out.json]

`vectors.pt` holds joined points (heads, points, width), as `layout_data.save_points` writes them.
To reach the heads and the width asked for, they are repeated, each time turned by another rotation:
distances, and so the work, stay those of real heads. The first round warms up and compiles.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from attention_atlas.layout import fused
from attention_atlas.layout.affinity import affinities
from attention_atlas.layout.attraction import attraction, tie
from attention_atlas.layout.fidelity import neighbourhood
from attention_atlas.layout.graph import symmetric
from attention_atlas.layout.methods import METHODS
from attention_atlas.layout.neighbours import Neighbours, as_points, find_neighbours
from attention_atlas.layout.repulsion import mesh_repulsion, pair_repulsion
from attention_atlas.layout.tsne import schedule
from benchmarks.layout_data import turned


def clock() -> float:
    torch.cuda.synchronize()
    return time.perf_counter()


def six_maps(vectors: Tensor) -> tuple[dict[str, float], dict[str, Tensor], Neighbours]:
    times, maps = {}, {}
    begin = clock()
    points = as_points(vectors, "cosine")
    near = find_neighbours(points, max(method.neighbours for method in METHODS.values()))
    times["neighbours"] = clock() - begin
    for dims in (2, 3):
        for name, method in METHODS.items():
            start = clock()
            maps[f"{name}-{dims}d"] = method.code.lay_out(points, dims, near, 0)
            times[f"{name}-{dims}d"] = clock() - start
    times["all"] = clock() - begin
    return times, maps, near


def per_call(function: Any, repeats: int = 10) -> float:
    function()
    begin = clock()
    for _ in range(repeats):
        function()
    return 1e3 * (clock() - begin) / repeats


def parts(points: Tensor, near: Neighbours, maps: dict[str, Tensor]) -> dict[str, float]:
    """Milliseconds of the pieces of t-SNE, at the finished maps."""
    heads, count, _ = points.shape
    result = {}
    begin = clock()
    weights = affinities(near, 30.0)
    result["affinities, once"] = 1e3 * (clock() - begin)
    begin = clock()
    graph = symmetric(near.index, weights, "mean")
    result["symmetric, once"] = 1e3 * (clock() - begin)
    begin = clock()
    ties = tie(graph, heads)
    result["tie, once"] = 1e3 * (clock() - begin)
    result["ties a point"] = len(graph.column) / heads / count
    result["padded ties a point"] = len(ties.column) / heads / count
    for dims in (2, 3):
        places = maps[f"tsne-{dims}d"].contiguous()
        flat = places.view(-1, dims)[ties.order].contiguous()
        result[f"attraction {dims}-D"] = per_call(lambda y=flat: fused.attraction(y, ties))
        result[f"repulsion {dims}-D"] = per_call(lambda y=places: fused.repulsion(y), 5)
    y = maps["tsne-2d"].contiguous()
    result["mesh repulsion 2-D"] = per_call(lambda: mesh_repulsion(y), 5)
    return result


def errors(points: Tensor, near: Neighbours, maps: dict[str, Tensor]) -> dict[str, float]:
    """Relative errors of the fused sums against plain torch in double precision, on two heads."""
    result = {}
    two = near.nearest(90)
    two = Neighbours(two.index[:2], two.distance[:2], two.metric)
    ties = tie(symmetric(two.index, affinities(two, 30.0), "mean"), 2)
    for dims in (2, 3):
        places = maps[f"tsne-{dims}d"][:2].contiguous()
        flat = places.view(-1, dims)
        cpu = type(ties)(*(x.cpu() for x in (
            ties.order, ties.first, ties.offset, ties.column, ties.weight)))  # fmt: skip
        true = attraction(flat.double().cpu(), cpu).cuda()
        result[f"attraction {dims}-D"] = relative(fused.attraction(flat, ties), true)
        small = places[:, :5003].contiguous()
        true_pair = pair_repulsion(small.double())
        for what, ours, true in zip(
            ("potential", "force"), fused.repulsion(small), true_pair, strict=True
        ):
            result[f"{what} {dims}-D"] = relative(ours, true)
    return result


def relative(ours: Tensor, true: Tensor) -> float:
    return float((ours - true).norm() / true.norm())


def divergence(places: Tensor, near: Neighbours, heads: list[int]) -> float:
    total = 0.0
    for head in heads:
        one = Neighbours(near.index[head : head + 1], near.distance[head : head + 1], near.metric)
        graph = symmetric(one.index, affinities(one, 30.0), "mean")
        y = places[head : head + 1].contiguous()
        count = y.shape[1]
        z = fused.repulsion(y)[0].double().sum() - count
        square = (y[0][graph.row] - y[0][graph.column]).square().sum(1).double()
        p = graph.weight.double() / count
        total += float((p * (p.clamp_min(1e-30).log() + square.log1p())).sum() + z.log())
    return total / len(heads)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("vectors", type=Path)
    parser.add_argument("--heads", type=int, default=144)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    vectors = turned(torch.load(asked.vectors).float(), asked.heads, asked.width).cuda()
    report: dict[str, Any] = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    report["shape"] = list(vectors.shape)
    report["schedule"] = [vars(phase) for phase in schedule(vectors.shape[1])]
    report["first round, s"], first, _ = six_maps(vectors)
    torch.cuda.reset_peak_memory_stats()
    report["second round, s"], maps, near = six_maps(vectors)
    report["peak GiB"] = torch.cuda.max_memory_allocated() / 2**30
    report["repeats to the bit"] = {name: bool((first[name] == maps[name]).all()) for name in maps}
    points = as_points(vectors, "cosine")
    report["errors"] = errors(points, near, maps)
    report["parts, ms"] = parts(points, near, maps)
    some = list(range(0, asked.heads, 18))
    rows = torch.arange(0, points.shape[1], 20, device="cuda")
    report["quality"] = {
        name: [float(x.mean()) for x in neighbourhood(points[some], y[some], rows)]
        for name, y in maps.items()
    }
    report["divergence"] = {
        name: divergence(maps[name], near, some) for name in ("tsne-2d", "tsne-3d")
    }
    text = json.dumps(report, indent=1)
    print(text)
    if asked.json:
        asked.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
