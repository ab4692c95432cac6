"""Sums and means of the attention of several tokens, against NumPy."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import attention_atlas as aa
from tests import atlases
from tests.made_once import MadeOnce
from tests.tolerance import reading_tolerance


@pytest.fixture(scope="module")
def seq2seq(made_once: MadeOnce) -> aa.Atlas:
    return aa.open(made_once("seq2seq", atlases.seq2seq) / "seq2seq.atlas")


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    tokens=st.lists(st.integers(0, 3), min_size=1, max_size=6),
    side=st.sampled_from(["query", "key"]), how=st.sampled_from(["mean", "sum"]),
)  # fmt: skip
def test_a_set_sums_or_averages_its_rows_or_columns(
    seq2seq: aa.Atlas, tokens: list[int], side: Any, how: Any
) -> None:
    weights = seq2seq.weights(0, "cross.L1H1").astype(float)
    each = sorted(set(tokens))
    taken, axis = (weights[each], 0) if side == "query" else (weights[:, each], 1)
    expected = taken.mean(axis) if how == "mean" else taken.sum(axis)
    found = seq2seq.attention_of(tokens, 0, "cross.L1H1", side, how)
    off = len(each) * reading_tolerance(seq2seq, 0, "cross.L1H1")
    np.testing.assert_allclose(found, expected, rtol=0, atol=off)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (lambda atlas: atlas.attention_of([], 0, "cross.L0H0"), "no token is picked"),
        (lambda atlas: atlas.attention_of([99], 0, "cross.L0H0"), "there is no token 99"),
        (lambda atlas: atlas.attention_of([0], 0, "cross.L0H0", "left"), "side is 'left'"),
        (lambda atlas: aa.text_view(atlas, heads=["cross.L0H0"], pick=[99]), "there is no token"),
    ],
)
def test_what_is_not_there_is_refused_with_a_sentence(
    seq2seq: aa.Atlas, asked: Callable[[aa.Atlas], Any], words: str
) -> None:
    with pytest.raises(aa.AtlasError, match=words):
        asked(seq2seq)


def test_views_open_with_a_set(seq2seq: aa.Atlas, tmp_path: Path) -> None:
    view = aa.head_view(seq2seq, heads=["cross.L1H1"], pick=[2, 0], side="key", together="sum")
    assert view.picks["chosen"] == {"side": "key", "positions": [0, 2]}
    assert view.picks["together"] == "sum"
    assert aa.text_view(seq2seq, heads=["cross.L1H1"], pick=[2]).picks["chosen"] is None
