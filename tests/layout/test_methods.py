"""Do the layouts do what they say, on real and on made vectors?"""

import numpy as np
import numpy.typing as npt
import pytest
import torch
from sklearn.decomposition import PCA
from torch import Tensor

from attention_atlas.layout.affinity import affinities
from attention_atlas.layout.attraction import attraction, tie
from attention_atlas.layout.fidelity import Dots, neighbourhood
from attention_atlas.layout.fuzzy import memberships
from attention_atlas.layout.graph import symmetric
from attention_atlas.layout.methods import METHODS, lay_out
from attention_atlas.layout.neighbours import Neighbours, as_points, find_neighbours
from attention_atlas.layout.pca import pca
from attention_atlas.layout.repulsion import mesh_repulsion, pair_repulsion
from attention_atlas.names.errors import InputError
from tests.layout.vectors import joined
from tests.tolerance import dot_tolerance, unit


@pytest.fixture(scope="module")
def points(minilm: Dots) -> Tensor:
    return joined(minilm)


@pytest.fixture(scope="module")
def near(points: Tensor) -> Neighbours:
    return find_neighbours(points, 90)


def trust(points: Tensor, places: Tensor) -> float:
    return float(neighbourhood(points, places, torch.arange(points.shape[1]))[0].mean())


def only(near: Neighbours, head: int) -> Neighbours:
    return Neighbours(near.index[head, None], near.distance[head, None], near.metric)


def axes_tolerance(points: npt.NDArray[np.float64], dims: int) -> float:
    """How far rounding may move places on principal axes.

    The covariance is off by at most P u times its trace, and an axis turns by at most that over the
    gap to the next variance (Davis and Kahan); a place turns with it.
    """
    moved = points - points.mean(0)
    variance = np.linalg.eigvalsh(moved.T @ moved)[::-1]
    gap = -np.diff(variance[: dims + 1]).max()
    turn = len(points) * unit() * float(variance.sum()) / float(gap)
    return turn * float(np.linalg.norm(moved, axis=1).max())


@pytest.mark.parametrize("dims", [2, 3])
def test_pca_is_scikit_learns_up_to_sign(points: Tensor, dims: int) -> None:
    ours = pca(points, dims)
    for head in range(len(points)):
        theirs = PCA(dims, svd_solver="full").fit_transform(points[head].double().numpy())
        signs = np.sign((ours[head].numpy() * theirs).sum(0))
        off = np.abs(ours[head].numpy() * signs - theirs).max()
        assert off <= axes_tolerance(points[head].double().numpy(), dims)


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_neighbours_are_those_of_scikit_learn(metric: str) -> None:
    from sklearn.neighbors import NearestNeighbors

    vectors = torch.randn(2, 300, 12, generator=torch.Generator().manual_seed(0))
    near = find_neighbours(as_points(vectors, metric), 10, metric)
    for head in range(2):
        tree = NearestNeighbors(n_neighbors=10, metric=metric).fit(vectors[head].numpy())
        distance, index = tree.kneighbors()
        assert (near.index[head].numpy() == index).mean() > 0.999
        # |x − y|² = |x|² − 2 x·y + |y|²: four dot products
        off = 4 * dot_tolerance(vectors[head], vectors[head])
        assert np.square(near.distance[head].numpy()) == pytest.approx(distance**2, abs=off)


def test_copies_of_a_point_are_equally_sure_though_rounding_parts_them() -> None:
    index = torch.arange(1, 15).expand(1, 15, 14) % 15
    rounding = 5e-8 * torch.arange(14.0).expand(1, 15, 14)
    assert (memberships(Neighbours(index, rounding, "cosine")) == 1).all()


@pytest.mark.parametrize(("dims", "error"), [(2, 0.02), (3, 0.1)])
def test_the_mesh_gives_the_forces_of_every_pair(dims: int, error: float) -> None:
    places = 4 * torch.randn(2, 800, dims, generator=torch.Generator().manual_seed(0))
    for mesh, pairs in zip(mesh_repulsion(places), pair_repulsion(places.double()), strict=True):
        assert (mesh - pairs).norm() / pairs.norm() < error


def test_attraction_is_the_sum_over_ties(near: Neighbours) -> None:
    graph = symmetric(near.index, affinities(near, 30.0), "mean")
    ties = tie(graph, len(near.index))
    places = torch.randn(len(ties.order), 2, generator=torch.Generator().manual_seed(0))
    apart = places[graph.row] - places[graph.column]
    pulls = graph.weight[:, None] * apart / (1 + apart.square().sum(1, keepdim=True))
    expected = torch.zeros_like(places).index_add_(0, graph.row, pulls)
    sizes = torch.zeros_like(places).index_add_(0, graph.row, pulls.abs())
    terms = int(graph.row.bincount().max()) + 8  # and the roundings of each pull
    off = (attraction(places[ties.order], ties) - expected[ties.order]).abs().max()
    assert off <= 2 * terms * unit() * sizes.max()


# What moves points by many steps takes as long in three dimensions and goes the same way.
WAYS = [
    pytest.param(method, dims, marks=pytest.mark.full if dims == 3 and method != "pca" else ())
    for method in METHODS
    for dims in (2, 3)
]


@pytest.mark.parametrize(("method", "dims"), WAYS)
class TestWhatALayoutKeeps:
    def test_repeats_and_does_not_depend_on_the_heads_beside(
        self, points: Tensor, method: str, dims: int
    ) -> None:
        some = points[:2, ::4]
        near = find_neighbours(some, 90)
        together = lay_out(some, method, dims, near, seed=3)
        assert torch.equal(together, lay_out(some, method, dims, near, seed=3))
        # Products of several heads round otherwise, and many steps make that another map of the
        # same quality: the means over seeds agree within five standard errors.
        seeds = range(3, 9)
        beside = [trust(some[:1], lay_out(some, method, dims, near, seed=s)[:1]) for s in seeds]
        alone = [
            trust(some[:1], lay_out(some[:1], method, dims, only(near, 0), seed=s)) for s in seeds
        ]
        error = np.std(beside + alone, ddof=1) * np.sqrt(2 / len(seeds))
        assert np.mean(alone) == pytest.approx(np.mean(beside), abs=max(5 * error, unit()))

    def test_keeps_a_spiral_of_positions_in_order(
        self, spiral: Tensor, method: str, dims: int
    ) -> None:
        places = lay_out(spiral, method, dims, find_neighbours(spiral, 90, "euclidean"))[0]
        step = (places[1:] - places[:-1]).norm(dim=1).median()
        apart = (places - places[torch.arange(1500).roll(400)]).norm(dim=1).median()
        assert apart > 5 * step

    def test_keeps_clusters_of_offsets_together(
        self, clusters: tuple[Tensor, Tensor], method: str, dims: int
    ) -> None:
        points, label = clusters
        places = lay_out(points, method, dims, find_neighbours(points, 90, "euclidean"))
        nearest = find_neighbours(places, 10, "euclidean").index[0]
        share = (label[nearest] == label[:, None]).float().mean()
        assert share > (0.5 if method == "pca" else 0.99)


@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.parametrize("method", METHODS)
class TestEveryLayout:
    @pytest.mark.parametrize("count", [2, 3, 8, 40])
    def test_lays_out_fewer_points_than_neighbours(
        self, count: int, method: str, dims: int
    ) -> None:
        vectors = torch.randn(2, count, 6, generator=torch.Generator().manual_seed(0))
        points = as_points(vectors, "cosine")
        places = lay_out(points, method, dims, find_neighbours(points, 90))
        assert places.shape == (2, count, dims)
        assert places.isfinite().all()

    def test_puts_equal_points_in_one_place_and_spares_the_head_beside(
        self, method: str, dims: int
    ) -> None:
        vectors = torch.randn(2, 60, 6, generator=torch.Generator().manual_seed(0))
        vectors[0] = 1.0
        points = as_points(vectors, "cosine")
        places = lay_out(points, method, dims, find_neighbours(points, 90))
        assert (places[0] == 0).all()
        assert places.isfinite().all()
        assert places[1].std() > 0


def test_nan_in_vectors_names_the_heads() -> None:
    vectors = torch.ones(3, 4, 2)
    vectors[1, 2, 0] = torch.nan
    with pytest.raises(InputError, match=r"1 of 3 heads hold NaN .*numbers 1\); capture"):
        as_points(vectors, "cosine")


def test_an_unknown_layout_or_dimension_is_refused(points: Tensor, near: Neighbours) -> None:
    with pytest.raises(InputError, match="there are: umap, tsne, pca"):
        lay_out(points, "mds", 2, near)
    with pytest.raises(InputError, match="2 or 3 dimensions, not 4"):
        lay_out(points, "pca", 4, near)
    with pytest.raises(InputError, match="there are: cosine, euclidean"):
        as_points(points, "hamming")
    with pytest.raises(InputError, match=r"shape \(heads, points, width\)"):
        as_points(points[0], "cosine")
