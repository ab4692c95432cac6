"""What do openTSNE and umap-learn make of the vectors of these tests?

`python -m tests.layout.reference.make` writes places.npz, graphs.npz and versions.json beside this
file, in a minute. Tests compare our layouts with these files, and `make full` makes some of it
anew, so that the files cannot grow old unseen.
"""

import json
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy import sparse
from torch import Tensor

from attention_atlas.layout.affinity import affinities
from attention_atlas.layout.fuzzy import COPY
from attention_atlas.layout.graph import Graph, symmetric
from attention_atlas.layout.neighbours import Neighbours, as_points, find_neighbours
from attention_atlas.layout.pca import pca
from tests.layout import vectors

FOLDER = Path(__file__).parent
EVERY = 16  # of their graphs one row in so many is kept
Arrays = dict[str, npt.NDArray[Any]]


def cases(minilm: Tensor, copies: Tensor) -> dict[str, Tensor]:
    """Returns the points (1, P, width) of each map, by name."""
    real = {f"minilm-{head}": minilm[head, None] for head in range(len(minilm))}
    alike = {f"copies-{head}": copies[head, None] for head in range(len(copies))}
    made = {"spiral": vectors.spiral(), "clusters": vectors.clusters()[0], "gap": vectors.gap()}
    return real | alike | {name: as_points(one, "cosine") for name, one in made.items()}


def tsne_graph(points: Tensor) -> Graph:
    near = find_neighbours(points, 90)
    return symmetric(near.index, affinities(near, 30.0), "mean")


def open_tsne(points: Tensor) -> npt.NDArray[np.float32]:
    """Returns openTSNE's places (P, 2) on our affinities, which a test holds to be its own."""
    from openTSNE import TSNEEmbedding
    from openTSNE.affinity import PrecomputedAffinities

    graph, start = tsne_graph(points), pca(points, 2)[0]
    n = len(start)
    p = sparse.csr_matrix(
        (graph.weight.double().numpy() / n, graph.column.numpy(), graph.start.numpy()), (n, n)
    )
    first = (start / start[:, 0].std() * 1e-4).double().numpy()
    made = TSNEEmbedding(first, PrecomputedAffinities(p, normalize=False), random_state=0)
    made = made.optimize(250, exaggeration=12, momentum=0.8)
    return np.asarray(made.optimize(500, momentum=0.8), np.float32)


def open_tsne_graph(near: Neighbours) -> sparse.csr_matrix:
    from openTSNE.affinity import joint_probabilities_nn

    index, distance = near.index[0].numpy(), near.distance[0].double().numpy()
    return joint_probabilities_nn(index, distance, [30.0], symmetrize=True).tocsr()


def umap_learn(points: Tensor) -> npt.NDArray[np.float32]:
    """Returns umap-learn's places (P, 2)."""
    options: dict[str, Any] = {"metric": "cosine", "random_state": 0, "n_jobs": 1}
    made = _quietly(lambda umap: umap.UMAP(**options).fit_transform(points[0].numpy()))
    return np.asarray(made, np.float32)


def umap_learn_graph(near: Neighbours) -> sparse.csr_matrix:
    """Returns umap-learn's memberships of one head. It takes the nearest distance above 0 for its
    unit, be it only rounding; a copy of a point is therefore given to it at distance 0.
    """
    n = near.index.shape[1]
    apart = near.distance[0].masked_fill(near.distance[0] <= COPY, 0).numpy()
    return _quietly(
        lambda umap: umap.umap_.fuzzy_simplicial_set(
            np.zeros((n, 1)), 15, np.random.RandomState(0), "cosine",
            knn_indices=np.hstack([np.arange(n)[:, None], near.index[0].numpy()]),
            knn_dists=np.hstack([np.zeros((n, 1)), apart]).astype(np.float32),
        )[0].tocsr()
    )  # fmt: skip


def umap_learn_curve() -> npt.NDArray[np.float64]:
    return np.array(_quietly(lambda umap: umap.umap_.find_ab_params(1.0, 0.1)))


def _quietly(use: Callable[[Any], Any]) -> Any:
    """Uses umap-learn, which warns of its own dependencies and resets torch's threads."""
    threads = torch.get_num_threads()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import umap

        made = use(umap)
    torch.set_num_threads(threads)
    return made


def as_arrays(name: str, theirs: sparse.csr_matrix) -> Arrays:
    """Returns some rows of their graph."""
    rows = theirs[::EVERY].tocsr()
    return {
        f"{name}/data": rows.data.astype(np.float32),
        f"{name}/column": rows.indices.astype(np.uint16),
        f"{name}/start": rows.indptr.astype(np.int32),
    }


def main() -> None:
    torch.set_num_threads(1)
    given = cases(
        vectors.joined(vectors.head_vectors(vectors.sentences())),
        vectors.joined(vectors.head_vectors(vectors.near_copies())),
    )
    places = {f"opentsne/{name}": open_tsne(points) for name, points in given.items()}
    places |= {
        f"umap/{name}": umap_learn(points)
        for name, points in given.items()
        if name.startswith("minilm")
    }
    graphs: Arrays = {"umap/curve": umap_learn_curve()}
    for name in ("clusters", "copies-0"):
        near = find_neighbours(given[name], 14)
        graphs |= as_arrays(f"umap/{name}", umap_learn_graph(near))
    # which of many copies are the nearest is a matter of rounding, so these are kept
    graphs["umap/copies-0/index"] = near.index[0].numpy().astype(np.uint16)
    graphs["umap/copies-0/distance"] = near.distance[0].numpy()
    near = find_neighbours(vectors.clusters()[0], 90, "euclidean")
    graphs |= as_arrays("opentsne/clusters", open_tsne_graph(near))
    np.savez_compressed(FOLDER / "places.npz", **places)  # type: ignore[arg-type]
    np.savez_compressed(FOLDER / "graphs.npz", **graphs)  # type: ignore[arg-type]
    versions = {name: version(name) for name in ("openTSNE", "umap-learn", "numba", "torch")}
    (FOLDER / "versions.json").write_text(json.dumps(versions, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
