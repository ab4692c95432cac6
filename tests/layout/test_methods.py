"""Do the layouts do what the reference packages do, on real and on made vectors?"""

import warnings

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.decomposition import PCA
from torch import Tensor

from attention_atlas.layout.affinity import affinities
from attention_atlas.layout.attraction import attraction, tie
from attention_atlas.layout.fidelity import Dots, neighbourhood
from attention_atlas.layout.fuzzy import COPY, memberships
from attention_atlas.layout.graph import Graph, symmetric
from attention_atlas.layout.joint import join
from attention_atlas.layout.methods import METHODS, lay_out
from attention_atlas.layout.neighbours import Neighbours, as_points, find_neighbours
from attention_atlas.layout.pca import pca
from attention_atlas.layout.repulsion import mesh_repulsion, pair_repulsion
from attention_atlas.layout.tsne import lay_out as tsne
from attention_atlas.layout.umap import A, B
from attention_atlas.names.errors import InputError


def joined(dots: Dots) -> Tensor:
    joint = join(dots.queries, dots.keys, "translate")
    return as_points(joint.points(dots.queries, dots.keys), joint.metric)


@pytest.fixture(scope="module")
def points(minilm: Dots) -> Tensor:
    return joined(minilm)


@pytest.fixture(scope="module")
def near(points: Tensor) -> Neighbours:
    return find_neighbours(points, 90)


def trust(points: Tensor, places: Tensor) -> float:
    return float(neighbourhood(points, places, torch.arange(points.shape[1]))[0].mean())


def divergence(graph: Graph, places: Tensor) -> float:
    """Kullback–Leibler divergence of one head's map, in double precision, by every pair."""
    p = graph.weight.double() / len(places)
    y = places.double()
    z = pair_repulsion(y[None])[0].sum() - len(y)
    square = (y[graph.row] - y[graph.column]).square().sum(1)
    return float((p * (p.clamp_min(1e-300).log() + square.log1p())).sum() + z.log())


def only(near: Neighbours, head: int) -> Neighbours:
    return Neighbours(near.index[head, None], near.distance[head, None], near.metric)


def open_tsne(graph: Graph, start: Tensor) -> Tensor:
    from openTSNE import TSNEEmbedding
    from openTSNE.affinity import PrecomputedAffinities

    n = len(start)
    p = sparse.csr_matrix(
        (graph.weight.double().numpy() / n, graph.column.numpy(), graph.start.numpy()), (n, n)
    )
    first = (start / start[:, 0].std() * 1e-4).double().numpy()
    made = TSNEEmbedding(first, PrecomputedAffinities(p, normalize=False), random_state=0)
    made = made.optimize(250, exaggeration=12, momentum=0.8)
    return torch.from_numpy(np.array(made.optimize(500, momentum=0.8)))


@pytest.mark.parametrize("dims", [2, 3])
def test_pca_is_scikit_learns_up_to_sign(points: Tensor, dims: int) -> None:
    ours = pca(points, dims)
    for head in range(len(points)):
        theirs = PCA(dims, svd_solver="full").fit_transform(points[head].double().numpy())
        signs = np.sign((ours[head].numpy() * theirs).sum(0))
        assert ours[head].numpy() * signs == pytest.approx(theirs, abs=1e-4)


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_neighbours_are_those_of_scikit_learn(metric: str) -> None:
    from sklearn.neighbors import NearestNeighbors

    vectors = torch.randn(2, 300, 12, generator=torch.Generator().manual_seed(0))
    near = find_neighbours(as_points(vectors, metric), 10, metric)
    for head in range(2):
        tree = NearestNeighbors(n_neighbors=10, metric=metric).fit(vectors[head].numpy())
        distance, index = tree.kneighbors()
        assert (near.index[head].numpy() == index).mean() > 0.999
        assert near.distance[head].numpy() == pytest.approx(distance, abs=1e-5)


def assert_within_3_percent_of_open_tsne(points: Tensor) -> None:
    """The divergence of one head's map (1, points, width), on the same affinities."""
    near = find_neighbours(points, 90)
    graph = symmetric(near.index, affinities(near, 30.0), "mean")
    ours = divergence(graph, tsne(points, 2, near)[0])
    theirs = divergence(graph, open_tsne(graph, pca(points, 2)[0]))
    assert ours <= 1.03 * theirs


class TestDivergenceIsAtMost3PercentAboveOpenTsnes:
    @pytest.mark.parametrize("head", [0, 1, 2, 3])
    def test_on_a_head_of_each_of_four_layers(self, points: Tensor, head: int) -> None:
        assert_within_3_percent_of_open_tsne(points[head, None])

    @pytest.mark.parametrize("head", [0, 1, 2, 3])
    def test_on_sentences_that_hardly_differ(self, copies: Dots, head: int) -> None:
        assert_within_3_percent_of_open_tsne(joined(copies)[head, None])

    @pytest.mark.parametrize("name", ["spiral", "clusters", "gap"])
    def test_on_made_vectors(self, name: str, request: pytest.FixtureRequest) -> None:
        made = request.getfixturevalue(name)
        vectors = made if isinstance(made, Tensor) else made[0]
        assert_within_3_percent_of_open_tsne(as_points(vectors, "cosine"))


def test_affinities_are_open_tsnes(clusters: tuple[Tensor, Tensor]) -> None:
    from openTSNE.affinity import joint_probabilities_nn

    points = clusters[0]
    one = find_neighbours(points, 90, "euclidean")
    theirs = joint_probabilities_nn(
        one.index[0].numpy(), one.distance[0].double().numpy(), [30.0], symmetrize=True
    ).tocsr()
    graph = symmetric(one.index, affinities(one, 30.0), "mean")
    n = points.shape[1]
    ours = sparse.csr_matrix((graph.weight.numpy() / n, graph.column.numpy(), graph.start.numpy()))
    assert abs(ours - theirs).sum() < 1e-3


def umap_learn(points: Tensor, **options: object) -> Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # umap-learn warns of its own dependencies
        from umap import UMAP

        made = UMAP(metric="cosine", random_state=0, n_jobs=1, **options).fit_transform(
            points.numpy()
        )
    return torch.from_numpy(np.array(made))


def test_umap_is_as_trustworthy_as_umap_learn(points: Tensor, near: Neighbours) -> None:
    theirs = torch.stack([umap_learn(one) for one in points])
    torch.set_num_threads(1)  # numba's start resets it
    ours = lay_out(points, "umap", 2, near)
    assert trust(points, ours) >= trust(points, theirs) - 0.01


def umap_learn_graph(near: Neighbours) -> sparse.csr_matrix:
    """umap-learn's memberships of one head. It takes the nearest distance above 0 for its unit, be
    it only rounding; a copy of a point is therefore given to it at distance 0.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from umap.umap_ import fuzzy_simplicial_set

        n = near.index.shape[1]
        itself = np.arange(n)[:, None]
        apart = near.distance[0].masked_fill(near.distance[0] <= COPY, 0).numpy()
        made = fuzzy_simplicial_set(
            np.zeros((n, 1)), 15, np.random.RandomState(0), "cosine",
            knn_indices=np.hstack([itself, near.index[0].numpy()]),
            knn_dists=np.hstack([np.zeros((n, 1)), apart]).astype(np.float32),
        )[0].tocsr()  # fmt: skip
    torch.set_num_threads(1)
    return made


def assert_memberships_are_umap_learns(points: Tensor) -> None:
    near = find_neighbours(points, 14)
    graph = symmetric(near.index, memberships(near), "either")
    ours = sparse.csr_matrix((graph.weight.numpy(), graph.column.numpy(), graph.start.numpy()))
    theirs = umap_learn_graph(near)
    assert abs(ours - theirs).sum() / theirs.sum() < 0.001


def test_memberships_are_umap_learns_on_clusters(clusters: tuple[Tensor, Tensor]) -> None:
    assert_memberships_are_umap_learns(as_points(clusters[0], "cosine"))


@pytest.mark.parametrize("head", [0, 1, 2, 3])
def test_memberships_are_umap_learns_where_tokens_repeat(copies: Dots, head: int) -> None:
    assert_memberships_are_umap_learns(joined(copies)[head, None])


def test_copies_of_a_point_are_equally_sure_though_rounding_parts_them() -> None:
    index = torch.arange(1, 15).expand(1, 15, 14) % 15
    rounding = 5e-8 * torch.arange(14.0).expand(1, 15, 14)
    assert (memberships(Neighbours(index, rounding, "cosine")) == 1).all()


def test_the_curve_is_umap_learns() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from umap.umap_ import find_ab_params
    assert find_ab_params(1.0, 0.1) == pytest.approx((A, B), abs=1e-4)


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
    assert torch.allclose(attraction(places[ties.order], ties), expected[ties.order], atol=1e-5)


@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.parametrize("method", METHODS)
class TestEveryLayout:
    def test_repeats_and_does_not_depend_on_the_heads_beside(
        self, points: Tensor, method: str, dims: int
    ) -> None:
        some = points[:, ::4]
        near = find_neighbours(some, 90)
        together = lay_out(some, method, dims, near, seed=3)
        assert torch.equal(together, lay_out(some, method, dims, near, seed=3))
        alone = lay_out(some[:1], method, dims, only(near, 0), seed=3)
        assert trust(some[:1], alone) == pytest.approx(trust(some[:1], together[:1]), abs=0.02)

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
    with pytest.raises(InputError, match="there are: pca, tsne, umap"):
        lay_out(points, "mds", 2, near)
    with pytest.raises(InputError, match="2 or 3 dimensions, not 4"):
        lay_out(points, "pca", 4, near)
    with pytest.raises(InputError, match="there are: cosine, euclidean"):
        as_points(points, "hamming")
    with pytest.raises(InputError, match=r"shape \(heads, points, width\)"):
        as_points(points[0], "cosine")
