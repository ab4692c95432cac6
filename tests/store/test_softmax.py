"""Are the weights of the reader the softmax of the textbook?"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attention_atlas.store.form import CAUSAL, FULL, Form, compress
from attention_atlas.store.softmax import weights
from tests.tolerance import dot_tolerance, softmax_tolerance, sum_tolerance

Floats = npt.NDArray[np.float32]


def vectors(heads: int, n: int, width: int, seed: int) -> Floats:
    return np.random.default_rng(seed).normal(size=(heads, n, width)).astype(np.float32)


def slow(
    query: Floats, key: Floats, scale: float, cap: float | None, sink: Floats | None, form: Form
) -> npt.NDArray[np.float64]:
    """One weight after the other, in Python's own numbers."""
    heads, n, _ = query.shape
    groups, m, _ = key.shape
    out = np.zeros((heads, n, m))
    seen = np.broadcast_to(form.visible(n, m), out.shape)
    added = form.added(n, m)
    bias = np.broadcast_to(np.float32(0) if added is None else added, out.shape)
    for h in range(heads):
        mine = key[h // (heads // groups)]
        for i in range(n):
            logits = {}
            for j in range(m):
                logit = scale * sum(
                    float(a) * float(b) for a, b in zip(query[h, i], mine[j], strict=True)
                )
                logit = logit if cap is None else cap * math.tanh(logit / cap)
                if seen[h, i, j]:
                    logits[j] = logit + float(bias[h, i, j])
            logits = logits or dict.fromkeys(range(m), 0.0)  # sees nothing: even
            total = sum(math.exp(logit) for logit in logits.values())
            total += 0.0 if sink is None else math.exp(float(sink[h]))
            for j, logit in logits.items():
                out[h, i, j] = math.exp(logit) / total
    return out


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    groups, share = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    n, m, width = (draw(st.integers(1, 6)) for _ in range(3))
    seed = draw(st.integers(0, 2**32 - 1))
    dice = np.random.default_rng(seed)
    heads = groups * share
    seen = dice.random((draw(st.sampled_from([1, heads])), n, m)) < draw(st.floats(0, 1))
    bias = dice.normal(size=(heads, n, m)) * draw(st.sampled_from([0.0, 1.0]))
    return {
        "query": vectors(heads, n, width, seed),
        "key": vectors(groups, m, width, seed + 1),
        "scale": draw(st.sampled_from([1.0, width**-0.5, 3.0])),
        "softcap": draw(st.sampled_from([None, 0.5, 20.0])),
        "sink": draw(st.sampled_from([None, dice.normal(size=heads).astype(np.float32)])),
        "form": compress(np.where(seen, bias, -np.inf).astype(np.float32)),
    }


def off_by(problem: dict[str, Any], sides: int = 2) -> float:
    """How far rounding may move the weights of a problem, and of each sum over its keys."""
    share = len(problem["query"]) // len(problem["key"])
    bias = problem["form"].added(problem["query"].shape[1], problem["key"].shape[1])
    added = [float(np.abs(one).max()) for one in (bias, problem["sink"]) if one is not None]
    return softmax_tolerance(
        problem["query"], problem["key"].repeat(share, 0), problem["scale"],
        max(added, default=0.0), sides,
    )  # fmt: skip


@given(problems())
def test_weights_are_those_of_a_slow_softmax(problem: dict[str, Any]) -> None:
    expected = slow(*problem.values())
    assert weights(**problem) == pytest.approx(expected, abs=off_by(problem, sides=1))


@given(problems())
def test_rows_sum_to_one_and_a_sink_takes_some_of_it(problem: dict[str, Any]) -> None:
    sums = weights(**problem).sum(axis=-1)
    if problem["sink"] is None:
        assert sums == pytest.approx(np.ones_like(sums), abs=sum_tolerance(weights(**problem)))
    else:  # a sink that is far below the logits takes less than a float32 can tell
        plain = weights(**{**problem, "sink": None})
        off = sum_tolerance(plain)
        assert (sums <= 1 + off).all() and (sums > 0).all()
        assert (weights(**problem) <= plain + off).all()


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_plain_weights_move_values_as_torch_does(causal: bool, groups: int) -> None:
    query, key, value = (vectors(h, 7, 8, seed) for seed, h in enumerate((4, groups, groups)))
    ours = weights(query, key, scale=8**-0.5, form=CAUSAL if causal else FULL)
    moved = torch.from_numpy(ours) @ torch.from_numpy(value).repeat_interleave(4 // groups, dim=0)
    q, k, v = (torch.from_numpy(one)[None] for one in (query, key, value))
    theirs = torch.nn.functional.scaled_dot_product_attention(
        q, k, v, is_causal=causal, enable_gqa=True
    )[0]
    shared = (one.repeat(4 // groups, 0) for one in (key, value))
    off = 7 * softmax_tolerance(query, next(shared), 8**-0.5) * float(np.abs(value).max())
    off += dot_tolerance(ours, next(shared).swapaxes(1, 2))
    torch.testing.assert_close(moved, theirs, atol=off, rtol=0)


def test_a_row_that_may_see_nothing_is_even() -> None:
    hidden = np.zeros((1, 2, 4), bool)
    hidden[0, 1] = True
    ours = weights(vectors(1, 2, 3, 0), vectors(1, 4, 3, 1), scale=1.0, form=Form(hidden=hidden))
    assert ours[0, 1].tolist() == [0.25, 0.25, 0.25, 0.25]


def test_two_keys_and_a_sink_share_a_row_as_worked_out_by_hand() -> None:
    query, key = np.ones((1, 1, 1), np.float32), np.array([[[0.0], [math.log(2)]]], np.float32)
    ours = weights(query, key, scale=1.0, sink=np.array([math.log(5)], np.float32))
    assert ours[0, 0] == pytest.approx([1 / 8, 2 / 8])


def test_a_soft_cap_bounds_how_much_one_key_can_win_by() -> None:
    query, key = np.ones((1, 1, 1), np.float32), np.array([[[-1e4], [1e4]]], np.float32)
    ours = weights(query, key, scale=1.0, softcap=1.0)
    assert ours[0, 0, 1] == pytest.approx(math.e / (math.e + 1 / math.e))


def test_huge_logits_do_not_overflow() -> None:
    query, key = np.full((1, 1, 1), 1e4, np.float32), np.array([[[1e4], [-1e4]]], np.float32)
    assert weights(query, key, scale=1.0).tolist() == [[[1.0, 0.0]]]


def test_half_precision_vectors_are_read_in_single() -> None:
    query, key = (vectors(2, 5, 4, seed).astype(np.float16) for seed in (0, 1))
    wide = weights(query.astype(np.float32), key.astype(np.float32), scale=0.5)
    assert weights(query, key, scale=0.5).dtype == np.float32
    assert (weights(query, key, scale=0.5) == wide).all()
