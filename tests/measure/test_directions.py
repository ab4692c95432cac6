"""The directions of a head: together they are q·k, the planted one is found, few keep most."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import attention_atlas as aa
from attention_atlas.measure.directions import Directions
from attention_atlas.page.live.answers import Answers
from tests import atlases, planted
from tests.made_once import MadeOnce
from tests.tolerance import step_tolerance, unit

WIDTH = 16


@pytest.fixture(scope="module")
def gpt(made_once: MadeOnce) -> aa.Atlas:
    return aa.open(made_once("gpt", atlases.gpt) / "gpt.atlas")


@pytest.fixture(scope="module")
def meeting(tmp_path_factory: pytest.TempPathFactory) -> tuple[aa.Atlas, Any]:
    """Queries of a kind look at keys of their kind, along one direction u among loud others.

    Queries are loud where keys say nothing, keys are loud where queries say nothing, and all keys
    share a large mean; nothing of that decides where the head looks.
    """
    luck = np.random.default_rng(3)
    texts = [["<s>", *luck.choice(["cat", "sun"], 24)] for _ in range(12)]
    kind = np.array([{"cat": 1.0, "sun": -1.0}.get(word, 0.0) for text in texts for word in text])
    basis = np.linalg.qr(luck.standard_normal((WIDTH, WIDTH)))[0]
    u, loud_queries, loud_keys = basis[0], basis[1:5], basis[5:9]
    draw = luck.standard_normal
    query = 3 * kind[:, None] * u + 9 * draw((len(kind), 4)) @ loud_queries
    key = 3 * kind[:, None] * u + 9 * draw((len(kind), 4)) @ loud_keys + 20 * basis[10]
    query, key = (one + 0.02 * draw((len(kind), WIDTH)) for one in (query, key))
    folder = tmp_path_factory.mktemp("meeting") / "x.atlas"
    return planted.write(folder, texts, query[None], key[None]), kind


@pytest.mark.parametrize("way", ["contrast", "svd"])
def test_the_planted_direction_is_found_first(meeting: tuple[aa.Atlas, Any], way: Any) -> None:
    atlas, kind = meeting
    found = atlas.directions("L0H0", way=way)
    a, b, _ = found.coordinates(atlas.queries("L0H0"), atlas.keys("L0H0"))
    assert abs(np.corrcoef(a[:, 0], kind)[0, 1]) > 0.99
    assert abs(np.corrcoef(b[:, 0], kind)[0, 1]) > 0.99
    assert found.share[0] > 0.9
    assert found.kept[0] < 0.6 and found.kept[1] > 0.9
    ends = {(end.side, end.sign): end.tokens for end in found.ends[0]}
    assert ends["query", 1][0] == ends["key", 1][0]  # of one kind
    assert {ends["query", 1][0], ends["query", -1][0]} == {"cat", "sun"}


def test_no_single_neuron_keeps_what_one_direction_keeps(meeting: tuple[aa.Atlas, Any]) -> None:
    atlas, _ = meeting
    weights, scale = atlas.weights(0, "L0H0"), atlas.layer_of("L0H0").scale
    query, key = atlas.queries("L0H0", 0), atlas.keys("L0H0", 0)

    def alone(d: int) -> float:
        logits = scale * np.outer(query[:, d], key[:, d])
        grown = np.exp(logits - logits.max(1, keepdims=True))
        return float(1 - np.abs(grown / grown.sum(1, keepdims=True) - weights).sum(1).mean() / 2)

    assert max(map(alone, range(WIDTH))) < atlas.directions("L0H0").kept[1] - 0.2


@pytest.fixture(scope="module")
def found(gpt: aa.Atlas) -> Directions:
    return gpt.directions("L2H1")


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32 - 1), size=st.sampled_from([1e-3, 1.0, 1e3]))
def test_all_directions_together_are_the_product_of_any_query_and_key(
    found: Directions, seed: int, size: float
) -> None:
    luck = np.random.default_rng(seed)
    width = len(found.mean_key)
    query, key = size * luck.standard_normal((5, width)), luck.standard_normal((7, width))
    a, b, constant = found.coordinates(query, key)
    # Each of three products of D terms, and the inverse, lose D u of the sum of absolute terms.
    absolute = np.abs(key) + np.abs(found.mean_key)
    terms = np.abs(query) @ (np.abs(found.query) @ np.abs(found.key).T + 1) @ absolute.T
    off = 4 * width * unit(np.float64) * float(terms.max())
    np.testing.assert_allclose(a @ b.T + constant[:, None], query @ key.T, rtol=0, atol=off)
    assert off < 1e-6 * size * width  # the bound says something


@pytest.mark.parametrize("head", ["L0H0", "L2H1", "L5H3"])
@pytest.mark.parametrize("way", ["contrast", "svd"])
def test_shares_add_up_and_more_directions_keep_more(gpt: aa.Atlas, head: str, way: Any) -> None:
    found = gpt.directions(head, way=way)
    assert found.share.sum() == pytest.approx(1)
    assert 3 <= found.count <= 8 and len(found.ends) == found.count
    width = gpt.layer_of(head).width
    assert gpt.directions(head, k=width, way=way).kept[width] == pytest.approx(1, abs=1e-6)
    assert found.kept[8] > found.kept[0]


def test_shares_of_the_contrast_are_those_of_the_mean_gap_of_logits(
    meeting: tuple[aa.Atlas, Any],
) -> None:
    """Worked out pair by pair: what a matched key has more than an unmatched one."""
    atlas, _ = meeting
    found = atlas.directions("L0H0", k=4)
    gaps = []
    for number in range(len(atlas)):
        a, b, _ = found.coordinates(atlas.queries("L0H0", number), atlas.keys("L0H0", number))
        weights = atlas.weights(number, "L0H0").astype(float)
        for i, row in enumerate(weights):
            gaps.append(a[i] * (row @ b / row.sum() - b.mean(0)))
    each = np.mean(gaps, axis=0)
    np.testing.assert_allclose(each / each.sum(), found.share, atol=1e-5)


def test_a_head_takes_less_than_a_second(gpt: aa.Atlas) -> None:
    from time import process_time

    began = process_time()
    gpt.directions("L3H3")
    assert process_time() - began < 1


@pytest.mark.parametrize(
    ("asked", "words"),
    [({"way": "pca"}, "there is no way 'pca'"), ({"k": 0}, "neurons wide; ask for 1 to")],
)
def test_what_cannot_be_asked_is_said_in_a_sentence(
    gpt: aa.Atlas, asked: dict[str, Any], words: str
) -> None:
    with pytest.raises(aa.PickError, match=words):
        gpt.directions("L0H0", **asked)


def test_an_atlas_of_weights_alone_has_no_directions(made_once: MadeOnce) -> None:
    bare = aa.open(made_once("bare", atlases.bare) / "bare.atlas")
    with pytest.raises(aa.InputError, match="no query and key vectors"):
        bare.directions("L0H0")


def test_the_page_gets_the_points_of_a_map_along_a_direction(tmp_path: Path) -> None:
    atlas = planted.planted(tmp_path / "p.atlas", 6)
    atlas.layout("pca", progress=False)
    packet = Answers(atlas).answer("along/pca-2d/L0H2/1")
    found = atlas.directions("L0H2")
    a, b, _ = found.coordinates(atlas.queries("L0H2"), atlas.keys("L0H2"))
    expected = np.concatenate([a[:, 1], b[:, 1]])
    column = packet.column
    values = column.low + column.values / 65534 * (column.high - column.low)
    off = step_tolerance(column.low, column.high, 65534) + 1e-9
    np.testing.assert_allclose(values, expected, rtol=0, atol=off)
