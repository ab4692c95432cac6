"""Are our t-SNE and UMAP as good as openTSNE and umap-learn on the same vectors?

What these gave is kept in reference/, beside the script that made it.
"""

from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse
from torch import Tensor

from attention_atlas.layout.affinity import affinities
from attention_atlas.layout.fidelity import Dots, neighbourhood
from attention_atlas.layout.fuzzy import memberships
from attention_atlas.layout.graph import Graph, symmetric
from attention_atlas.layout.methods import lay_out
from attention_atlas.layout.neighbours import Neighbours, as_points, find_neighbours
from attention_atlas.layout.repulsion import pair_repulsion
from attention_atlas.layout.umap import A, B
from tests.layout import vectors
from tests.layout.reference import make
from tests.layout.vectors import joined

PLACES = np.load(make.FOLDER / "places.npz")
GRAPHS = np.load(make.FOLDER / "graphs.npz")
CASES = sorted(name.removeprefix("opentsne/") for name in PLACES if name.startswith("opentsne"))


@pytest.fixture(scope="module")
def cases(minilm: Dots, copies: Dots) -> dict[str, Tensor]:
    """Returns the points (1, P, width) of each map, by name."""
    return make.cases(joined(minilm), joined(copies))


def trust(points: Tensor, places: Tensor) -> float:
    return float(neighbourhood(points, places, torch.arange(points.shape[1]))[0].mean())


def divergence(graph: Graph, places: Tensor) -> float:
    """Kullback–Leibler divergence of one head's map, in double precision, by every pair."""
    p = graph.weight.double() / len(places)
    y = places.double()
    z = pair_repulsion(y[None])[0].sum() - len(y)
    square = (y[graph.row] - y[graph.column]).square().sum(1)
    return float((p * (p.clamp_min(1e-300).log() + square.log1p())).sum() + z.log())


@pytest.mark.full
@pytest.mark.parametrize("name", CASES)
def test_the_divergence_of_tsne_is_at_most_3_percent_above_open_tsnes(
    name: str, cases: dict[str, Tensor]
) -> None:
    points = cases[name]
    graph = make.tsne_graph(points)
    ours = lay_out(points, "tsne", 2, find_neighbours(points, 90))[0]
    theirs = torch.from_numpy(PLACES[f"opentsne/{name}"])
    assert divergence(graph, ours) <= 1.03 * divergence(graph, theirs)


def test_umap_is_as_trustworthy_as_umap_learn(minilm: Dots) -> None:
    """Seeds of umap-learn differ by less than 0.01 in trustworthiness."""
    points = joined(minilm)
    theirs = np.stack([PLACES[f"umap/minilm-{head}"] for head in range(len(points))])
    ours = lay_out(points, "umap", 2, find_neighbours(points, 90))
    assert trust(points, ours) >= trust(points, torch.from_numpy(theirs)) - 0.01


def kept(name: str, n: int) -> sparse.csr_matrix:
    """Returns the rows of their graph that are kept."""
    parts = (GRAPHS[f"{name}/{part}"] for part in ("data", "column", "start"))
    data, column, start = parts
    return sparse.csr_matrix((data, column.astype(int), start), (len(start) - 1, n))


def rows_of(graph: Graph, n: int) -> sparse.csr_matrix:
    whole = (graph.weight.numpy(), graph.column.numpy(), graph.start.numpy())
    return sparse.csr_matrix(whole, (n, n))[:: make.EVERY]


def off(ours: sparse.csr_matrix, theirs: sparse.csr_matrix) -> float:
    """Returns the share of their weight that is elsewhere in ours."""
    return float(abs(ours - theirs).sum() / theirs.sum())


def test_affinities_are_open_tsnes(clusters: tuple[Tensor, Tensor]) -> None:
    near = find_neighbours(clusters[0], 90, "euclidean")
    graph = symmetric(near.index, affinities(near, 30.0), "mean")
    n = clusters[0].shape[1]
    assert off(rows_of(graph, n) / n, kept("opentsne/clusters", n)) < 1e-3


def stored_neighbours(name: str) -> Neighbours:
    index = torch.from_numpy(GRAPHS[f"{name}/index"].astype(np.int64))
    return Neighbours(index[None], torch.from_numpy(GRAPHS[f"{name}/distance"])[None], "cosine")


@pytest.mark.parametrize("name", ["clusters", "copies-0"])
def test_memberships_are_umap_learns_where_tokens_repeat_too(
    name: str, clusters: tuple[Tensor, Tensor]
) -> None:
    if name == "clusters":
        near = find_neighbours(as_points(clusters[0], "cosine"), 14)
    else:
        near = stored_neighbours(f"umap/{name}")
    n = near.index.shape[1]
    graph = symmetric(near.index, memberships(near), "either")
    assert off(rows_of(graph, n), kept(f"umap/{name}", n)) < 1e-3


def test_the_curve_is_umap_learns() -> None:
    """They print four digits of it."""
    assert GRAPHS["umap/curve"] == pytest.approx((A, B), abs=1e-4)


# Made anew ---------------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.filterwarnings("ignore")  # what the libraries themselves warn of
class TestWhatIsKeptIsWhatTheLibrariesGive:
    """Rounding sends a layout elsewhere on another machine; how good it is stays the same."""

    @pytest.mark.parametrize("name", ["clusters", "copies-1"])
    def test_open_tsne(self, name: str, cases: dict[str, Tensor]) -> None:
        graph = make.tsne_graph(cases[name])
        again = torch.from_numpy(make.open_tsne(cases[name]))
        stored = torch.from_numpy(PLACES[f"opentsne/{name}"])
        assert divergence(graph, again) == pytest.approx(divergence(graph, stored), rel=0.01)

    def test_umap_learn(self, cases: dict[str, Tensor]) -> None:
        points = cases["minilm-0"]
        again, stored = make.umap_learn(points), PLACES["umap/minilm-0"]
        near: Any = [trust(points, torch.from_numpy(one)[None]) for one in (again, stored)]
        assert near[0] == pytest.approx(near[1], abs=0.01)

    def test_graphs(self) -> None:
        near = stored_neighbours("umap/copies-0")
        n = near.index.shape[1]
        again = make.umap_learn_graph(near)[:: make.EVERY]
        assert off(again, kept("umap/copies-0", n)) < 1e-5
        euclidean = find_neighbours(vectors.clusters()[0], 90, "euclidean")
        again = make.open_tsne_graph(euclidean)[:: make.EVERY]
        assert off(again, kept("opentsne/clusters", euclidean.index.shape[1])) < 1e-5
        assert make.umap_learn_curve() == pytest.approx(GRAPHS["umap/curve"], abs=1e-6)
