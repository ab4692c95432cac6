"""Are contributions and norms what plain loops over a hooked model give, and do they add up?

Weights, values and the projection come from hooks on modules that are named by hand. Atlases are
captured with their weights, so that nothing is rounded to half precision.
"""

from functools import cache
from typing import Any

import hypothesis.extra.numpy as arrays
import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attention_atlas.names.errors import PickError, StoreError
from attention_atlas.store import output
from attention_atlas.store.contributions import contributions, layer_output, norms
from attention_atlas.store.output import LayerProjection
from tests.edits.shapes import HEADS, weights_and_values
from tests.record.test_output import ALL, captured

EXACT: Any = ("query", "key", "value", "weights")
NAMES = ("GPT-2", "BERT", "Llama", "Gemma", "ViT", "T5")
Floats = npt.NDArray[np.float64]


@cache
def known(name: str) -> tuple[Any, list[str], Floats, Floats, Floats, Floats]:
    """The atlas, its heads in one layer, and of input 1: weights, values, projection, bias."""
    shape = ALL[name]
    atlas, model, inputs = captured(shape, keep=EXACT)
    weights, values = weights_and_values(shape, _eager(model), inputs[1])
    module: Any = model.get_submodule(shape.projection)
    matrix = module.weight if type(module).__name__ == "Conv1D" else module.weight.T
    bias = getattr(module, "bias", None)
    bias = torch.zeros(matrix.shape[1]) if bias is None else bias
    heads = [f"{shape.layer}H{head}" for head in range(HEADS)]
    tensors = (weights[0], values[0], matrix.reshape(HEADS, -1, matrix.shape[1]), bias)
    return atlas, heads, *(tensor.detach().double().numpy() for tensor in tensors)


def _eager(model: Any) -> Any:
    model.set_attn_implementation("eager")
    return model


@pytest.mark.parametrize("name", NAMES)
def test_contributions_and_norms_are_those_of_plain_loops(name: str) -> None:
    atlas, heads, weights, values, matrix, bias = known(name)
    _, n, m = weights.shape
    mine = np.stack([atlas.contributions(1, head) for head in heads])
    lengths = np.stack([atlas.moved_norms(1, head) for head in heads])
    for i in range(n):
        moved = np.zeros((HEADS, m, matrix.shape[2]))
        for head in range(HEADS):
            for j in range(m):
                moved[head, j] = weights[head, i, j] * (values[head, j] @ matrix[head])
        output = moved.sum((0, 1)) + bias
        for head in range(HEADS):
            for j in range(m):
                share = moved[head, j] @ output / (output @ output)
                assert mine[head, i, j] == pytest.approx(share, abs=1e-5)
                size = np.linalg.norm(moved[head, j])
                assert lengths[head, i, j] == pytest.approx(size, abs=1e-5)
        # Over all heads and keys, with the bias, the shares of a row are the whole.
        assert mine[:, i].sum() + bias @ output / (output @ output) == pytest.approx(1, abs=1e-5)


def test_some_rows_of_one_head_are_the_same_as_those_of_all() -> None:
    atlas, heads, *_ = known("Llama")
    whole = atlas.contributions(0, heads[2])
    np.testing.assert_allclose(atlas.contributions(0, heads[2], [4, 1]), whole[[4, 1]], atol=1e-6)
    some = atlas.moved_rows().rows(0, 1, None, [2, 0], [3], [1, 0])
    np.testing.assert_allclose(some[0, 0], whole[3, [1, 0]], atol=1e-6)


def test_without_some_keys_weights_are_softmaxes_over_the_others() -> None:
    atlas, _, weights, values, matrix, bias = known("GPT-2")
    left = weights.copy()
    left[:, :, 0] = 0
    left /= np.maximum(left.sum(-1, keepdims=True), 1e-30)
    moved = np.einsum("hij,hje,hed->hijd", left, values, matrix)
    output = moved.sum((0, 2)) + bias
    # Row 0 sees nothing but key 0: nothing is left to share.
    size = np.maximum((output**2).sum(1), 1e-30)
    share = np.einsum("hijd,id->hij", moved, output) / size[:, None]
    mine = atlas.moved_rows(without=[0]).rows(1, 1)
    np.testing.assert_allclose(mine, share, atol=1e-5)


numbers = st.floats(-2, 2, width=32)


@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(1, 3), st.integers(1, 2), st.integers(1, 5), st.integers(1, 4))
def test_shares_add_up_whatever_the_numbers(
    data: st.DataObject, groups: int, group: int, n: int, width: int
) -> None:
    heads = groups * group
    logits = data.draw(arrays.arrays(np.float32, (heads, n, n), elements=numbers))
    weights = np.exp(logits)
    weights /= weights.sum(-1, keepdims=True)
    values = data.draw(arrays.arrays(np.float32, (groups, n, width), elements=numbers))
    matrix = data.draw(arrays.arrays(np.float32, (heads, width, 3), elements=numbers))
    bias = data.draw(arrays.arrays(np.float32, (3,), elements=numbers))
    projection = LayerProjection(matrix, bias)
    output = layer_output(weights, values, projection)
    shares = contributions(weights, values, output, range(heads), group)
    moved = np.einsum(
        "hij,hje,hed->hijd", weights.astype(float), values.repeat(group, 0).astype(float),
        matrix.astype(float),
    )  # fmt: skip
    total = moved.sum((0, 2)) + bias
    # Sums of at most heads · n · width terms, each once rounded to float32.
    slack = 64 * np.finfo(np.float32).eps * (np.abs(moved).sum() + 1) * (np.abs(matrix).sum() + 1)
    back = np.einsum("id,hed->hie", total, matrix.astype(float))
    np.testing.assert_allclose(output.back, back, atol=slack)
    lengths = norms(weights, values, projection, range(heads), group)
    np.testing.assert_allclose(lengths, np.linalg.norm(moved, axis=-1), atol=slack)
    squares = (total**2).sum(1)
    large = squares > 0.05
    whole = shares.sum((0, 2)) + total @ bias / np.where(squares > 0, squares, 1)
    np.testing.assert_allclose(whole[large], 1, atol=float(slack / 0.05))


def test_products_of_a_projection_are_made_when_they_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row costs 2 · 4 · 5 there and back, 4 · 4 with the products, which cost 4 · 4 · 5."""
    small = LayerProjection(np.ones((2, 2, 5), np.float32), None)
    assert small.products_for(1) is not None  # made once, in no time
    monkeypatch.setattr(output, "_SMALL", 0)
    projection = LayerProjection(np.ones((2, 2, 5), np.float32), None)
    assert projection.products_for(3) is None  # 3 rows would save 3 · 24 of 80
    assert projection.products_for(4) is not None
    assert projection.products_for(3) is None  # whatever was asked before
    wide = LayerProjection(np.ones((2, 5, 4), np.float32), None)  # 10 rows, and 2 · 4 is less
    assert wide.products_for(10**6) is None


def test_a_row_that_gives_nothing_has_no_shares() -> None:
    projection = LayerProjection(np.zeros((1, 2, 3), np.float32), None)
    weights = np.full((1, 2, 2), 0.5, np.float32)
    values = np.ones((1, 2, 2), np.float32)
    given_output = layer_output(weights, values, projection)
    shares = contributions(weights, values, given_output, [0], 1)
    np.testing.assert_array_equal(shares, np.zeros_like(shares))


def test_a_head_that_looks_at_a_sink_and_moves_nothing_scores_so() -> None:
    """Head 0 puts nearly all weight on key 0, whose value is zero; head 1 moves the rest."""
    n = 6
    weights = np.zeros((2, n, n), np.float32)
    weights[0, :, 0], weights[0, :, 1] = 0.95, 0.05
    weights[1] = np.eye(n)
    values = np.random.default_rng(0).normal(size=(2, n, 4)).astype(np.float32)
    values[:, 0] = 0
    matrix = np.random.default_rng(1).normal(size=(2, 4, 8)).astype(np.float32)
    projection = LayerProjection(matrix, None)
    output = layer_output(weights, values, projection)
    shares = contributions(weights, values, output, [0, 1], 1)
    lengths = norms(weights, values, projection, [0, 1], 1)
    assert weights[0, :, 0].mean() > 0.9
    assert np.abs(shares[0, :, 0]).max() == 0 and lengths[0, :, 0].max() == 0
    np.testing.assert_allclose(shares[:, 1:].sum((0, 2)), 1, atol=1e-5)
    assert (shares[1, 2:].sum(1) > shares[0, 2:].sum(1)).all()


def test_without_values_or_with_an_unknown_wish_there_is_one_sentence() -> None:
    atlas, _, _ = captured(ALL["GPT-2"], keep=("query", "key"))
    with pytest.raises(StoreError, match="captured without values"):
        atlas.contributions(0, "L0H0")
    with pytest.raises(PickError, match="give moved or contribution"):
        atlas.moved_rows("nothing")
