"""Ours against openTSNE, umap-learn and scikit-learn on the same heads: CPU time and quality.

    python -m benchmarks.layout compare TEXT --heads 5 30 60
    python -m benchmarks.layout growth TEXT
    python -m benchmarks.layout full TEXT --heads 144

TEXT is any long text file (.txt or .txt.xz), or a .pt file of points as `layout_data.save_points`
writes them, to be carried to a machine without the model. Each measurement runs in a process of its
own, on one thread; imports and compiling are left out of its CPU time. Results go to results/.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attention_atlas.layout.affinity import affinities
from attention_atlas.layout.fidelity import neighbourhood
from attention_atlas.layout.graph import symmetric
from attention_atlas.layout.methods import METHODS, lay_out
from attention_atlas.layout.neighbours import as_points, find_neighbours
from attention_atlas.layout.pca import pca
from attention_atlas.layout.repulsion import pair_repulsion
from benchmarks.layout_data import text_points, turned

RESULTS = Path(__file__).parent / "results"
Timed = tuple[Tensor, float]


def cpu(work: Callable[[], Any]) -> tuple[Any, float]:
    begin = time.process_time()
    result = work()
    return result, time.process_time() - begin


def ours(method: str, dims: int = 2) -> Callable[[Tensor], Timed]:
    """Neighbours are counted in, though maps of one head share them."""

    def run(vectors: Tensor) -> Timed:
        lay_out(vectors[:, :200], method, dims, find_neighbours(vectors[:, :200], 90))

        def work() -> Tensor:
            points = as_points(vectors, "cosine")
            near = find_neighbours(points, METHODS[method].neighbours or 1)
            return lay_out(points, method, dims, near)

        return cpu(work)

    return run


def open_tsne(vectors: Tensor) -> Timed:
    from openTSNE import TSNE

    data = vectors[0].numpy()
    made, seconds = cpu(lambda: TSNE(metric="cosine", n_jobs=1, random_state=0).fit(data))
    return torch.from_numpy(np.array(made))[None], seconds


def open_tsne_tuned(vectors: Tensor) -> Timed:
    """Our neighbours and start given, and its coarse mesh; the neighbours' time is counted in."""
    from openTSNE import TSNEEmbedding
    from openTSNE.affinity import PrecomputedAffinities, joint_probabilities_nn

    def work() -> Any:
        points = as_points(vectors, "cosine")
        near = find_neighbours(points, 90)
        p = joint_probabilities_nn(near.index[0].numpy(), near.distance[0].double().numpy(), [30.0])
        start = pca(points, 2)[0]
        start = (start / start[:, 0].std() * 1e-4).double()
        made = TSNEEmbedding(
            start.numpy(), PrecomputedAffinities(p.tocsr(), normalize=False), n_jobs=1,
            random_state=0, ints_in_interval=2, negative_gradient_method="fft",
        )  # fmt: skip
        return made.optimize(250, exaggeration=12, momentum=0.8).optimize(500, momentum=0.8)

    made, seconds = cpu(work)
    return torch.from_numpy(np.array(made))[None], seconds


def sklearn_tsne(vectors: Tensor) -> Timed:
    from sklearn.manifold import TSNE

    data = vectors[0].numpy()
    made, seconds = cpu(lambda: TSNE(metric="cosine", n_jobs=1, random_state=0).fit_transform(data))
    return torch.from_numpy(made)[None], seconds


def umap_learn(vectors: Tensor, **options: Any) -> Timed:
    from umap import UMAP

    def fit(data: Any, **more: Any) -> Any:
        return UMAP(metric="cosine", random_state=0, n_jobs=1, **more).fit_transform(data)

    data = vectors[0].numpy()
    fit(data[: min(len(data), 4200)], n_epochs=2)  # compiles
    made, seconds = cpu(lambda: fit(data, **options))
    return torch.from_numpy(np.array(made))[None], seconds


def umap_learn_tuned(vectors: Tensor) -> Timed:
    points = as_points(vectors, "cosine")
    near, finding = cpu(lambda: find_neighbours(points, 14))
    itself = np.arange(points.shape[1])[:, None]
    index = np.hstack([itself, near.index[0].numpy()]).astype(np.int32)
    distance = np.hstack([np.zeros_like(itself), near.distance[0].numpy()]).astype(np.float32)
    start = pca(points, 2)[0].numpy()
    start = 10 * (start - start.min(0)) / np.ptp(start, axis=0)
    made, seconds = umap_learn(
        vectors, n_epochs=200, init=start, precomputed_knn=(index, distance, None)
    )
    return made, seconds + finding


def sklearn_pca(vectors: Tensor) -> Timed:
    from sklearn.decomposition import PCA

    data = as_points(vectors, "cosine")[0].numpy()
    made, seconds = cpu(lambda: PCA(2, svd_solver="full").fit_transform(data))
    return torch.from_numpy(made)[None], seconds


RUNS: dict[str, Callable[[Tensor], Timed]] = {
    "tsne ours": ours("tsne"),
    "tsne openTSNE": open_tsne,
    "tsne openTSNE tuned": open_tsne_tuned,
    "tsne scikit-learn": sklearn_tsne,
    "umap ours": ours("umap"),
    "umap umap-learn": umap_learn,
    "umap umap-learn tuned": umap_learn_tuned,
    "pca ours": ours("pca"),
    "pca scikit-learn": sklearn_pca,
}


def divergence(vectors: Tensor, places: Tensor) -> float:
    """On one set of affinities for all: those of exact neighbours at perplexity 30."""
    near = find_neighbours(as_points(vectors, "cosine"), 90)
    graph = symmetric(near.index, affinities(near, 30.0), "mean")
    y = places[0].double()
    p = graph.weight.double() / len(y)
    z = pair_repulsion(y[None])[0].sum() - len(y)
    square = (y[graph.row] - y[graph.column]).square().sum(1)
    return float((p * (p.clamp_min(1e-300).log() + square.log1p())).sum() + z.log())


def peak_memory() -> float:
    """MB. Linux hands the peak of a parent on to its child in getrusage, but not here."""
    status = Path("/proc/self/status").read_text()
    return float(status.split("VmHWM:")[1].split()[0]) / 1024


def measure(name: str, vectors: Tensor) -> dict[str, Any]:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    begin = time.perf_counter()
    places, seconds = RUNS[name](vectors)
    row: dict[str, Any] = {"run": name, "cpu_s": seconds}
    row["wall_s"] = time.perf_counter() - begin
    row["peak_MB"] = peak_memory()
    torch.set_num_threads(1)
    rows = torch.arange(0, places.shape[1], max(1, places.shape[1] // 500))
    points = as_points(vectors, "cosine")
    row["trust"], row["kept"] = (float(x) for x in neighbourhood(points, places.float(), rows))
    if name.startswith("tsne") and places.shape[1] <= 20_000:
        row["divergence"] = divergence(vectors, places)
    return row


def alone(name: str, vectors: Tensor) -> dict[str, Any]:
    """The measurement in a fresh process: libraries change each other's threads and memory."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vectors.pt"
        torch.save(vectors.clone(), path)
        one = {**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
        done = subprocess.run(
            [sys.executable, __file__, "one", str(path), "--run", name],
            env=one, capture_output=True, text=True, check=True,
        )  # fmt: skip
    row: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return row


def machine() -> dict[str, Any]:
    names = ("torch", "numpy", "openTSNE", "umap-learn", "scikit-learn", "numba")
    return {
        "date": datetime.now(UTC).isoformat(timespec="minutes"),
        "machine": f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores",
        "load before": os.getloadavg()[0],
        "versions": {name: version(name) for name in names},
    }


def save(name: str, rows: list[dict[str, Any]]) -> None:
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"layout-{name}.json"
    path.write_text(json.dumps({**machine(), "rows": rows}, indent=1) + "\n")


def compare(text: Path, heads: list[int], points: int, runs: list[str]) -> None:
    carried = text.suffix == ".pt"
    vectors = torch.load(text).float() if carried else text_points(text, points // 2)
    rows = []
    for head in heads:
        for name in runs:
            rows.append({"head": head, **alone(name, vectors[head, None])})
            print(json.dumps(rows[-1]), flush=True)
            save("compare", rows)


def growth(text: Path, sizes: list[int]) -> None:
    if text.suffix == ".pt":
        vectors = torch.load(text).float()[:1]
    else:
        vectors = text_points(text, max(sizes) // 2)[30, None]
    half = vectors.shape[1] // 2
    rows = []
    for size in sizes:
        some = torch.cat([vectors[:, : size // 2], vectors[:, half : half + size // 2]], 1)
        for name in ("pca ours", "tsne ours", "umap ours"):
            rows.append({"points": size, **alone(name, some)})
            print(json.dumps(rows[-1]), flush=True)
            save("growth", rows)


def full(text: Path, heads: int, points: int) -> None:
    """All three 2-D maps of so many heads, neighbours shared, one process per core."""
    if text.suffix == ".pt":
        vectors = turned(torch.load(text).float(), heads, 64)
    else:
        pieces = [text_points(text, points // 2, piece) for piece in range(-(-heads // 72))]
        vectors = torch.cat(pieces)[:heads]
    cores = len(os.sched_getaffinity(0))  # `taskset -c 0,1` makes it a machine of two
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        workers = []
        for number in range(cores):
            path = Path(folder) / f"{number}.pt"
            torch.save(vectors[number::cores].clone(), path)
            command = [sys.executable, __file__, "share", str(path)]
            workers.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        said = [worker.communicate()[0] for worker in workers]
        wall = time.perf_counter() - begin
    row = {"heads": heads, "points": points, "wall_s": wall, "load after": os.getloadavg()[0]}
    row["cpu_s"] = sum(json.loads(text.splitlines()[-1])["cpu_s"] for text in said)
    print(row)
    save("full", [row])


def share(path: Path) -> None:
    torch.set_num_threads(1)
    begin = time.process_time()
    for vectors in torch.load(path).split(1):
        points = as_points(vectors, "cosine")
        near = find_neighbours(points, max(method.neighbours for method in METHODS.values()))
        for method in METHODS:
            lay_out(points, method, 2, near)
    print(json.dumps({"cpu_s": time.process_time() - begin}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("what", choices=["compare", "growth", "full", "one", "share"])
    parser.add_argument("path", type=Path)
    parser.add_argument("--heads", type=int, nargs="+", default=[5, 30, 60])
    parser.add_argument("--points", type=int, default=10_000)
    parser.add_argument("--run", choices=RUNS, action="append")
    asked = parser.parse_args()
    if asked.what == "compare":
        compare(asked.path, asked.heads, asked.points, asked.run or list(RUNS))
    elif asked.what == "growth":
        growth(asked.path, [1000, 2000, 5000, 10_000, 20_000, 50_000])
    elif asked.what == "full":
        full(asked.path, asked.heads[0], asked.points)
    elif asked.what == "share":
        share(asked.path)
    else:
        print(json.dumps(measure(asked.run[0], torch.load(asked.path))))


if __name__ == "__main__":
    main()
