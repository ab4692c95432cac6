"""Does the joint space keep every attention weight, and is c what it says?"""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from attention_atlas.layout import joint
from attention_atlas.layout.fidelity import Dots, TokenInputs, correlation
from attention_atlas.layout.joint import JOINTS, best_scale, join, weighted_correlation
from attention_atlas.layout.neighbours import as_points
from attention_atlas.names.errors import InputError
from tests.tolerance import unit


def attention(queries: Tensor, keys: Tensor) -> Tensor:
    return (queries @ keys.transpose(1, 2)).softmax(2)


@pytest.mark.parametrize("name", JOINTS)
@settings(deadline=None, max_examples=30)
@given(
    seed=st.integers(0, 2**31),
    heads=st.integers(1, 3),
    tokens=st.integers(1, 12),
    width=st.integers(1, 9),
    gap=st.floats(0.1, 10),
)
def test_no_normalisation_changes_an_attention_weight(
    name: str, seed: int, heads: int, tokens: int, width: int, gap: float
) -> None:
    numbers = torch.Generator().manual_seed(seed)
    shape = (heads, tokens, width)
    queries = gap * torch.randn(shape, generator=numbers, dtype=torch.float64) + 1
    keys = torch.randn(shape, generator=numbers, dtype=torch.float64) / gap - 1
    joint = join(queries, keys, name)
    after = attention(joint.queries(queries), joint.keys(keys))
    assert torch.allclose(after, attention(queries, keys), atol=1e-6)


def test_in_the_lifted_space_distance_ranks_keys_exactly_as_the_dot_product(minilm: Dots) -> None:
    joint = join(minilm.queries, minilm.keys, "lift")
    points = as_points(joint.points(minilm.queries, minilm.keys), joint.metric).double()
    exact = Dots(minilm.queries.double(), minilm.keys.double(), minilm.tokens)
    assert correlation(exact, points).max() < -0.9999


def test_centroids_meet_after_translation_and_after_scaling(minilm: Dots) -> None:
    for name in ("translate", "scale"):
        joint = join(minilm.queries, minilm.keys, name)
        queries, keys = joint.queries(minilm.queries), joint.keys(minilm.keys)
        off = sum((one.abs().sum(1).max() for one in (queries, keys)), start=torch.zeros(()))
        assert (queries.mean(1) - keys.mean(1)).abs().max() <= unit() * off  # n u Σ / n of each


@pytest.mark.parametrize("gap", [0.25, 4.0])
def test_a_planted_norm_gap_is_undone_by_c(gap: float) -> None:
    """Queries gap² times as spread as keys: c is within a tenth of 1 / gap of balance."""
    numbers = torch.Generator().manual_seed(0)
    base = torch.randn(2, 400, 16, generator=numbers)
    other = torch.randn(2, 400, 16, generator=numbers)
    balanced = best_scale(base, other)
    assert best_scale(base * gap, other / gap) * gap == pytest.approx(balanced, rel=1e-3)


def test_c_beats_its_neighbours_in_the_stated_correlation() -> None:
    numbers = torch.Generator().manual_seed(3)
    a = 3 * torch.randn(1, 128, 8, generator=numbers)
    b = torch.randn(1, 128, 8, generator=numbers)
    a, b = a - a.mean(1, keepdim=True), b - b.mean(1, keepdim=True)
    best = float(best_scale(a, b))

    def score(c: float) -> float:
        apart = torch.cdist(c * a, b / c).square()
        return float(weighted_correlation(apart, a @ b.transpose(1, 2)))

    assert score(best) >= max(score(best * 0.8), score(best * 1.25))


def test_c_is_found_beyond_the_first_grid(minilm: Dots, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = best_scale(minilm.queries, minilm.keys)
    narrow = torch.linspace(-0.1, 0.1, 5).exp()  # the best c of some heads lies outside
    monkeypatch.setattr(joint, "GRID", narrow)
    monkeypatch.setattr(joint, "SEARCHES", 1)
    assert best_scale(minilm.queries, minilm.keys) != pytest.approx(expected, rel=0.05)
    monkeypatch.setattr(joint, "SEARCHES", 40)
    assert best_scale(minilm.queries, minilm.keys) == pytest.approx(expected, rel=0.05)


def test_without_a_best_c_queries_and_keys_spread_equally() -> None:
    """Keys all equal: every c has the same correlation, none."""
    queries = torch.randn(1, 50, 4, generator=torch.Generator().manual_seed(0))
    same = torch.ones(1, 50, 4)
    c = best_scale(queries, same)
    assert c.isfinite().all()
    assert c > 0


def test_an_unknown_normalisation_says_which_there_are() -> None:
    some = torch.zeros(1, 2, 3)
    with pytest.raises(InputError, match="there are: attention, raw, translate, scale, lift"):
        join(some, some, "whiten")


def test_queries_and_keys_of_different_width_are_refused() -> None:
    with pytest.raises(InputError, match="must agree in heads and width"):
        join(torch.zeros(1, 2, 3), torch.zeros(1, 2, 4), "raw")


def test_tokens_without_three_keys_have_no_correlation() -> None:
    one = torch.zeros(1, dtype=torch.int64)
    dots = Dots(torch.ones(1, 1, 2), torch.ones(1, 1, 2), TokenInputs(one, one))
    assert correlation(dots, torch.zeros(1, 2, 2)).isnan().all()
