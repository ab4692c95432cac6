"""Edge lists hold the strongest links and own up to the rest."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attention_atlas.page.answers import edges
from attention_atlas.page.answers.roots import Roots
from attention_atlas.page.wire.packing import pack
from attention_atlas.page.wire.text import Edges
from attention_atlas.store.rows import Float32
from tests.tolerance import step_tolerance, sum_tolerance

# A weight w travels as its root in 65,535 steps: half a step off the root is 2 √w half steps off w.
ROOT_STEP = 2 * step_tolerance()
Some = Sequence[int] | None


def _random(seed: int, heads: int, n: int, m: int) -> Float32:
    draws = np.random.default_rng(seed).dirichlet(np.full(m, 0.1), size=(heads, n))
    return np.asarray(draws, np.float32)


class Layers:
    """Given weights, read as those of an atlas are."""

    def __init__(self, weights: dict[int, Float32]):
        self.weights, self.largest = weights, 0

    def shape(self, input: int, layer: int, tower: str | None = None) -> tuple[int, int, int]:
        heads, n, m = self.weights[layer].shape
        return heads, n, m

    def rows(
        self, input: int, layer: int, tower: str | None = None, heads: Some = None,
        rows: Some = None, columns: Some = None,
    ) -> Float32:  # fmt: skip
        assert columns is None
        every = zip((heads, rows), self.weights[layer].shape, strict=False)
        some = [list(range(size)) if asked is None else list(asked) for asked, size in every]
        made = self.weights[layer][np.ix_(*some)]
        self.largest = max(self.largest, made.size)
        return made


@given(st.integers(0, 10_000), st.integers(1, 30), st.integers(1, 30))
def test_the_top_k_and_the_rest_are_what_a_plain_sort_gives(seed: int, m: int, k: int) -> None:
    rows = _random(seed, 1, 7, m)[0]
    index, top, rest, total = edges.top_k(rows, k)
    ordered = np.sort(rows, axis=1)[:, ::-1]
    kept = min(m, k)
    np.testing.assert_array_equal(top[:, :kept], ordered[:, :kept])
    np.testing.assert_allclose(
        rest, ordered[:, kept:].sum(axis=1), rtol=0, atol=sum_tolerance(rows)
    )
    np.testing.assert_array_equal(np.take_along_axis(rows, index[:, :kept], 1), top[:, :kept])
    np.testing.assert_allclose(total, rows.sum(axis=1), rtol=0, atol=sum_tolerance(rows))
    assert not top[:, kept:].any()


def _weights(roots: Roots) -> Float32:
    return np.asarray((roots / 65535) ** 2, np.float32)


def test_a_longer_input_travels_whole_and_rounded() -> None:
    layers = {0: _random(0, 12, 128, 128), 1: _random(1, 12, 128, 128)}
    found = edges.make_edges(Layers(layers), 0, "encoder", [0, 1])
    assert found.index is None and found.k == 128 and found.weight.dtype == np.uint16
    sent = _weights(found.weight).reshape(2, 12, 128, 128)
    for layer, weights in layers.items():
        np.testing.assert_allclose(sent[layer], weights, rtol=0, atol=ROOT_STEP)
        small = (weights > 1e-4) & (weights < 1e-2)  # a root of at least 0.01 is off by half a step
        np.testing.assert_allclose(sent[layer][small], weights[small], rtol=ROOT_STEP / 0.01)
    assert found.row_sum is None


class Shares(Layers):
    """Given numbers of another kind than weights."""

    def __init__(self, weights: dict[int, Float32], how: str):
        super().__init__(weights)
        self.how = how


def _shares(seed: int, heads: int, n: int, m: int, how: str) -> Float32:
    """Shares of very different sizes, above 1 too; a row without any; contributions with signs."""
    random = np.random.default_rng(seed)
    sizes = random.dirichlet(np.full(m, 0.1), size=(heads, n)) * 10 ** random.uniform(-3, 1, (n, 1))
    sizes[0, 0] = 0
    signs = random.choice([-1, 1], sizes.shape) if how == "contribution" else 1
    return np.asarray(sizes * signs, np.float32)


def _off(shares: Float32, peak: Float32, how: str) -> Float32:
    """How far a number is off: half a step off its root, which is a part of the root of the peak.

    |r² − w| ≤ 2 √w e + e² where the root is off by e. The page reads float32.
    """
    step = np.sqrt(peak) * step_tolerance(steps=32767 if how == "contribution" else 65535)
    return np.asarray(2 * np.sqrt(np.abs(shares)) * step + step**2 + 1e-6 * peak)


def _read(found: Edges) -> Float32:
    """Read rounded shares by what the wire says of them."""
    assert found.peak is not None and found.of != "weights"
    whole = {"moved": 65535, "contribution": 32767}[found.of]
    roots = found.weight.astype(float) / whole
    return np.asarray(roots * np.abs(roots) * found.peak[:, None])


@pytest.mark.parametrize("how", ["moved", "contribution"])
def test_rounded_shares_are_right_to_a_step_of_the_largest_of_their_row(how: str) -> None:
    layers = {0: _shares(0, 12, 128, 128, how), 1: _shares(1, 12, 128, 100, how)}
    found = edges.make_edges(Shares(layers, how), 0, "decoder", [0, 1])
    assert found.index is None and found.row_sum is None and found.weight.dtype.itemsize == 2
    sent = _read(found).reshape(2, 12, 128, 128)
    assert not sent[1, :, :, 100:].any()
    for place, shares in layers.items():
        peak = np.abs(shares).max(axis=2, keepdims=True)
        assert peak.max() > 2 and (shares.min() < -2) == (how == "contribution")
        assert (
            np.abs(sent[place, :, :, : shares.shape[2]] - shares) <= _off(shares, peak, how)
        ).all()
    one = edges.make_edges(Shares(layers, how), 0, "decoder", [0], of=2)
    np.testing.assert_array_equal(one.weight, found.weight[: 12 * 128])


@pytest.mark.parametrize("how", ["moved", "contribution"])
def test_the_strongest_shares_are_rounded_and_own_up_to_the_rest(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edges, "BUDGET", 12_000)
    shares = _shares(2, 3, 50, 60, how)
    found = edges.make_edges(Shares({0: shares}, how), 0, "decoder", [0])
    assert found.index is not None and found.k == 20 and found.weight.dtype.itemsize == 2
    rows, sent = shares.reshape(-1, 60), _read(found)
    sizes = np.sort(np.abs(rows), axis=1)[:, ::-1]
    asked = np.take_along_axis(rows, found.index.astype(np.intp), 1)
    np.testing.assert_array_equal(np.abs(asked), sizes[:, :20])
    assert (np.abs(sent - asked) <= _off(asked, sizes[:, :1], how)).all()
    left = sizes[:, 20:].sum(axis=1)
    np.testing.assert_allclose(found.rest, left, rtol=0, atol=2 * sum_tolerance(rows))


def test_one_layer_of_an_input_is_the_same_as_among_all() -> None:
    layers = {number: _random(number, 12, 300, 300) for number in range(3)}
    every = edges.make_edges(Layers(layers), 0, "encoder", [0, 1, 2])
    one = edges.make_edges(Layers(layers), 0, "encoder", [1], of=3)
    assert every.index is not None and one.index is not None and one.layers == [1]
    rows = slice(12 * 300, 2 * 12 * 300)
    np.testing.assert_array_equal(one.weight, every.weight[rows])
    np.testing.assert_array_equal(one.index, every.index[rows])
    np.testing.assert_array_equal(one.rest, every.rest[rows])


def test_a_short_input_travels_whole() -> None:
    layers = {0: _random(0, 2, 5, 5), 3: _random(1, 2, 5, 5)}
    found = edges.make_edges(Layers(layers), 0, "encoder", [0, 3])
    assert found.index is None and found.row_sum is None and found.layers == [0, 3]
    np.testing.assert_array_equal(
        found.weight, np.concatenate([layers[0].reshape(-1, 5), layers[3].reshape(-1, 5)])
    )


@pytest.mark.full
@settings(deadline=None, max_examples=3)
@given(st.integers(0, 100))
def test_twelve_by_twelve_heads_at_512_tokens_stay_under_six_megabytes(seed: int) -> None:
    layer = _random(seed, 12, 512, 512)
    found = edges.make_edges(Layers(dict.fromkeys(range(12), layer)), 0, "encoder", list(range(12)))
    assert found.index is not None and found.k >= 16
    assert len(pack(found)) <= 6_200_000
    assert found.index.shape == found.weight.shape == (12 * 12 * 512, found.k)
    row = layer[4, 77]
    strongest = np.argsort(-row)[: found.k]
    at = (5 * 12 + 4) * 512 + 77
    np.testing.assert_allclose(_weights(found.weight[at]), row[strongest], rtol=0, atol=ROOT_STEP)
    rest = 1 - row[strongest].sum()
    assert abs(found.rest[at] / 65535 - rest) <= step_tolerance() + sum_tolerance(row)


def test_rows_that_do_not_sum_to_one_are_told() -> None:
    layer = _random(0, 2, 4, 4)
    layer[1, 2] *= 0.5
    found = edges.make_edges(Layers({0: layer}), 0, "decoder", [0])
    assert found.row_sum is not None
    assert found.row_sum[1 * 4 + 2] == pytest.approx(0.5, abs=sum_tolerance(layer))
    assert found.row_sum[0] == pytest.approx(1.0, abs=sum_tolerance(layer))


def test_layers_with_fewer_keys_are_padded_with_nothing() -> None:
    layers = {0: _random(0, 1, 4, 4), 1: _random(1, 3, 2, 2)}
    found = edges.make_edges(Layers(layers), 0, "encoder", [0, 1])
    assert (found.heads, found.n, found.m, found.k) == ([1, 3], [4, 2], [4, 2], 4)
    assert found.weight.shape == (4 + 3 * 2, 4)
    assert not found.weight[4:, 2:].any()


def test_a_long_input_is_read_in_parts_and_comes_out_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    layers = {0: _random(0, 3, 1100, 1000)}
    at_once, in_parts = Layers(layers), Layers(layers)
    whole = edges.make_edges(at_once, 0, "encoder", [0])
    monkeypatch.setattr(edges, "LARGEST", 70_000)
    parts = edges.make_edges(in_parts, 0, "encoder", [0])
    assert at_once.largest == 3_300_000 and in_parts.largest <= 70_000
    assert whole.index is not None and parts.index is not None
    for one, other in ((whole.index, parts.index), (whole.weight, parts.weight)):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(whole.rest, parts.rest)
