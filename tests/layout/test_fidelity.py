"""Are the figures next to a map the ones they are said to be?"""

import pytest
import torch
from scipy.stats import spearmanr
from sklearn.manifold import trustworthiness

from attention_atlas.layout import apart
from attention_atlas.layout.apart import distances, multiplied, subtracted
from attention_atlas.layout.fidelity import (
    Dots,
    TokenInputs,
    correlation,
    fidelity,
    neighbourhood,
    overlap,
)
from attention_atlas.layout.fidelity import spearman as ours
from attention_atlas.layout.joint import join
from attention_atlas.layout.methods import METHODS, lay_out
from attention_atlas.layout.neighbours import as_points, find_neighbours
from attention_atlas.layout.place import Known, place
from attention_atlas.store.maps import FIGURES
from tests.layout.vectors import sight_of
from tests.tolerance import unit


def test_spearman_is_scipys_with_ties_too() -> None:
    numbers = torch.Generator().manual_seed(0)
    a = torch.randint(0, 6, (20,), generator=numbers).float()
    b = torch.randint(0, 6, (20,), generator=numbers).float()
    theirs = spearmanr(a.numpy(), b.numpy()).statistic
    assert float(ours(a, b)) == pytest.approx(theirs, abs=3 * 20 * unit())  # three sums of 20


def test_trustworthiness_is_scikit_learns() -> None:
    numbers = torch.Generator().manual_seed(0)
    points, places = (
        torch.randn(1, 200, 9, generator=numbers),
        torch.randn(1, 200, 2, generator=numbers),
    )
    trust, _ = neighbourhood(points, places, torch.arange(200), k=15)
    theirs = trustworthiness(points[0].numpy(), places[0].numpy(), n_neighbors=15)
    one_rank = 2 / (200 * 15 * (2 * 200 - 3 * 15 - 1))  # what a rank counts by its definition
    assert float(trust[0]) == pytest.approx(theirs, abs=10 * one_rank)  # rounding swaps a few ties


def test_the_correlation_of_two_small_inputs_can_be_worked_out_by_hand() -> None:
    """Input 0 ranks perfectly (−1); in input 1 the map is reversed (+1): their mean is 0."""
    queries = torch.ones(1, 6, 1)
    keys = torch.tensor([[[1.0], [2.0], [3.0], [1.0], [2.0], [3.0]]])
    places = torch.tensor([[0, 0, 0, 0, 0, 0, 3, 2, 1, 1, 2, 3]]).float()[..., None]
    inputs = torch.tensor([0, 0, 0, 1, 1, 1])
    found = correlation(Dots(queries, keys, TokenInputs(inputs, inputs)), places)
    assert found.tolist() == pytest.approx([0.0], abs=6 * 3 * unit())  # sums of three


def test_cosine_without_translation_gives_the_correlation_known_of_minilm(minilm: Dots) -> None:
    """Raw cosine is near −0.98 on MiniLM and translation costs some of it (ANCHORS)."""
    full = {}
    for name in ("raw", "translate"):
        joint = join(minilm.queries, minilm.keys, name)
        points = as_points(joint.points(minilm.queries, minilm.keys), joint.metric)
        full[name] = float(correlation(minilm, points).mean())
    assert full["raw"] < -0.9
    assert full["raw"] < full["translate"] < -0.5


def test_a_map_beats_pca_and_the_shuffled_control_is_chance(minilm: Dots) -> None:
    joint = join(minilm.queries, minilm.keys, "translate")
    points = as_points(joint.points(minilm.queries, minilm.keys), joint.metric)
    places = lay_out(points, "umap", 2, find_neighbours(points, 14))
    heads = slice(0, len(points))
    found = fidelity(points, minilm, [(sight_of(minilm), heads, heads)], places)
    assert set(found) == set(FIGURES)
    assert (found["map.trust"] > found["pca.trust"]).all()
    assert (found["map.kept"] > found["pca.kept"]).all()
    assert found["shuffled.correlation"].abs().max() < 0.05
    assert found["shuffled.visible"].abs().max() < 0.05
    assert found["shuffled.trust"].tolist() == pytest.approx([0.5] * 4, abs=0.05)
    assert found["shuffled.like"].tolist() == pytest.approx([0.5] * 4, abs=0.06)
    assert found["shuffled.overlap"].tolist() == pytest.approx([1.0] * 4, abs=0.1)
    assert found["shuffled.kept"].max() < 0.02
    off = (found["shuffled.strongest"] - found["chance"]).abs()
    assert off.max() < 0.08  # three standard errors of 500 rows at a chance near 0.2


@pytest.mark.full
@pytest.mark.parametrize("method", METHODS)
def test_left_out_points_are_placed_among_their_neighbours(minilm: Dots, method: str) -> None:
    joint = join(minilm.queries, minilm.keys, "translate")
    points = as_points(joint.points(minilm.queries, minilm.keys), joint.metric)
    left_out = torch.zeros(points.shape[1], dtype=torch.bool)
    left_out[::10] = True
    known, new = points[:, ~left_out], points[:, left_out]
    places = lay_out(known, method, 2, find_neighbours(known, 90))
    put = place(new, Known(known, places, joint.metric), method)
    everywhere = torch.cat([put, places], 1)
    rows = torch.arange(new.shape[1])
    trust, _ = neighbourhood(torch.cat([new, known], 1), everywhere, rows)
    mixed = torch.cat([put.roll(7, 1), places], 1)
    chance, _ = neighbourhood(torch.cat([new, known], 1), mixed, rows)
    whole, _ = neighbourhood(known, places, torch.arange(0, known.shape[1], 10))
    assert (trust > whole - 0.03).all()
    assert (trust > chance + 0.1).all()


def test_distances_as_a_gpu_computes_them_are_the_plain_ones() -> None:
    numbers = torch.Generator().manual_seed(3)
    for width, way in ((2, subtracted), (3, subtracted), (64, multiplied)):
        left = torch.randn(3, 2, 20, width, generator=numbers) * 5
        right = torch.cat([left[:, :, :4], torch.randn(3, 2, 30, width, generator=numbers)], 2)
        exact = (left.double()[..., :, None, :] - right.double()[..., None, :, :]).norm(dim=-1)
        got = way(left, right).double()
        # Differences, squares, their sum and the root are each rounded once; float64 squares and
        # products leave the root of their own rounding where two points are the same.
        off = (width + 3) * unit() * exact + float((2 * width * 2**-53) ** 0.5 * left.norm())
        assert ((got - exact).abs() <= off).all()
        assert (distances(left, right).double() - exact).abs().le(off).all()


def test_heads_taken_together_get_the_figures_of_each_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    numbers = torch.Generator().manual_seed(4)
    points, places = (torch.randn(7, 60, size, generator=numbers) for size in (9, 2))
    rows = torch.arange(0, 60, 4)
    alone = [*neighbourhood(points, places, rows), overlap(places, 30, rows)]
    monkeypatch.setattr(
        "attention_atlas.layout.fidelity.head_slices",
        lambda of, count: iter([slice(0, 4), slice(4, len(of))]),
    )
    together = [*neighbourhood(points, places, rows), overlap(places, 30, rows)]
    for one, other in zip(alone, together, strict=True):
        assert one.shape == (7,) and torch.equal(one, other)


def test_a_gpu_takes_as_many_heads_together_as_fit() -> None:
    points = torch.empty(10, 1000, 2, device="meta")
    rows = apart.CELLS // (1000 * 4)
    assert list(apart.head_slices(points, rows)) == [slice(0, 4), slice(4, 8), slice(8, 10)]
