"""Does a map show what was planted? Vectors are made, everything after them is the real code."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.sparse.csgraph import dijkstra
from scipy.stats import spearmanr
from sklearn.neighbors import NearestNeighbors, kneighbors_graph

from attention_atlas.atlas import Atlas
from attention_atlas.page.live.answers import Answers
from attention_atlas.page.wire.packing import unpack
from tests import planted

MAPS = ("umap-2d", "pca-2d")
POSITIONAL, NEXT, SEMANTIC, SINK, GAP = (f"L0H{head}" for head in range(5))
Ask = Callable[[str], Any]


@pytest.fixture(scope="module")
def atlas(tmp_path_factory: pytest.TempPathFactory) -> Atlas:
    made = planted.planted(tmp_path_factory.mktemp("planted") / "x.atlas")
    for name in MAPS:
        made.layout(name.split("-")[0], progress=False)
    return made


@pytest.fixture(scope="module")
def ask(atlas: Atlas) -> Ask:
    answers = Answers(atlas)

    def answer(path: str) -> Any:
        packet, found = answers.packet(path)
        told = unpack(packet)
        assert found, told
        return told

    return answer


def places(ask: Ask, map: str, head: str) -> Any:
    """(P, dims) across the box, as the page draws them."""
    told = ask(f"map/{map}/decoder")
    row = told["heads"].index(head)
    low, high = told["box"][row]
    return low + told["places"][row] / 65535 * (high - low)


def along(points: Any) -> Any:
    """How far each point is from one end of the curve that the points lie on."""
    graph = kneighbors_graph(points, 10, mode="distance")
    apart = dijkstra(graph, directed=False)
    whole = np.isfinite(apart[0])
    assert whole.mean() > 0.99, "the curve is torn"
    end = np.where(whole, apart[np.flatnonzero(whole)[0]], 0).argmax()
    return apart[end]


@pytest.mark.full
@pytest.mark.parametrize("map", MAPS)
def test_a_position_head_is_a_curve_in_the_order_of_positions(ask: Ask, map: str) -> None:
    position = ask(f"points/{map}/decoder")["position"]
    far = along(places(ask, map, POSITIONAL))
    there = np.isfinite(far)
    assert abs(spearmanr(far[there], position[there]).statistic) > 0.95
    other = places(ask, map, SEMANTIC)[:, 0]
    assert abs(spearmanr(other, position).statistic) < 0.3


def nearest_key_is_next(ask: Ask, head: str) -> float:
    """The share of queries, but for the last of each input, whose nearest key stands after."""
    told = ask("points/umap-2d/decoder")
    at, split = places(ask, "umap-2d", head), told["queries"]
    position = told["position"].astype(int)
    near = NearestNeighbors(n_neighbors=1).fit(at[split:]).kneighbors(at[:split])[1][:, 0]
    inside = position[:split] + 1 <= position[split:].max()
    return float((position[split:][near] == position[:split] + 1)[inside].mean())


@pytest.mark.full
def test_in_a_next_token_head_the_nearest_key_of_a_query_is_the_next_one(ask: Ask) -> None:
    assert nearest_key_is_next(ask, NEXT) > 0.95
    assert nearest_key_is_next(ask, SEMANTIC) < 0.2


def spread_of_hits(ask: Ask, head: str, word: str) -> float:
    """Mean distance of hits over that of all points, queries and keys apart: the page's ranking."""
    told = ask("points/umap-2d/decoder")
    at, split = places(ask, "umap-2d", head), told["queries"]
    hit = told["text"] == told["texts"].index(word)
    sides = [(at[:split], hit[:split]), (at[split:], hit[split:])]
    return float(np.mean([mean_apart(side[found]) / mean_apart(side) for side, found in sides]))


def mean_apart(points: Any) -> float:
    apart = np.linalg.norm(points[:, None] - points[None], axis=2)
    return float(apart.sum() / (len(points) * (len(points) - 1)))


@pytest.mark.full
@pytest.mark.parametrize("word", ["cat", "Paris", "three"])
def test_hits_of_a_search_lie_closer_in_a_semantic_head_than_in_a_positional_one(
    ask: Ask, word: str
) -> None:
    semantic, positional = (spread_of_hits(ask, head, word) for head in (SEMANTIC, POSITIONAL))
    assert semantic < 0.5 * positional
    assert positional == pytest.approx(1, abs=0.2)


@pytest.mark.full
def test_the_first_token_takes_all_until_it_is_hidden(ask: Ask) -> None:
    mean = ask(f"mean/{SINK}")["weights"] / 65535
    assert mean[:, 0].min() > 0.8
    weights = ask(f"rows/0/{SINK}")["weights"]
    n = len(weights)
    assert (weights.argmax(1) == 0).mean() > 0.95
    rest = weights[2:, 1:] / weights[2:, 1:].sum(1, keepdims=True)
    back = 1 + rest.argmax(1) == np.arange(2, n) - 1
    assert back.mean() > 0.95


def lengths(ask: Ask, head: str, scaled: bool) -> tuple[float, float]:
    """Mean length of queries and of keys, worked out as wire.py says."""
    norms, laid = ask("norms/umap-2d/decoder"), ask("map/umap-2d/decoder")
    row, split = laid["heads"].index(head), norms["queries"]
    low, high = norms["low"][row], norms["high"][row]
    values = norms["values"][row] / 255
    query, key = (
        float((low[s] + values[part] * (high[s] - low[s])).mean())
        for s, part in enumerate((slice(None, split), slice(split, None)))
    )
    c = float(laid["c"][row]) if scaled else 1.0
    return query * c, key / c


@pytest.mark.full
def test_a_gap_of_lengths_is_seen_and_goes_away_by_scaling(ask: Ask) -> None:
    query, key = lengths(ask, GAP, scaled=False)
    assert key / query == pytest.approx(planted.GAP, rel=0.05)
    query, key = lengths(ask, GAP, scaled=True)
    assert 0.8 < key / query < 1.25


@pytest.mark.full
def test_lengths_that_travel_are_those_of_the_vectors(atlas: Atlas, ask: Ask) -> None:
    query, key = lengths(ask, SINK, scaled=False)
    assert query == pytest.approx(np.linalg.norm(atlas.queries(SINK), axis=1).mean(), rel=1e-3)
    assert key == pytest.approx(np.linalg.norm(atlas.keys(SINK), axis=1).mean(), rel=1e-3)
