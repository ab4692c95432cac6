"""How much attention moves, worked out by hand and by properties."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from attention_atlas.lab.change import total_variation
from tests.tolerance import sum_tolerance

EYE = np.eye(3, dtype=np.float32)[None]


def test_a_head_that_looks_as_before_does_not_change() -> None:
    assert total_variation(EYE, EYE).tolist() == [0.0]


def test_a_head_that_looks_elsewhere_in_every_row_changes_by_one() -> None:
    assert total_variation(EYE, EYE[:, :, [1, 2, 0]]).tolist() == [1.0]


def test_what_moves_is_counted_once_and_averaged_over_rows() -> None:
    before = np.array([[[1.0, 0.0], [0.5, 0.5]]], np.float32)
    after = np.array([[[1.0, 0.0], [0.25, 0.75]]], np.float32)
    assert total_variation(before, after) == pytest.approx([0.125])


def test_what_a_sink_takes_has_moved_too() -> None:
    whole, half = np.array([[[1.0]]], np.float32), np.array([[[0.5]]], np.float32)
    assert total_variation(whole, half) == pytest.approx([0.5])


ROWS = arrays.arrays(np.float32, (2, 3, 4), elements=st.floats(2**-7, 1, width=32))


@given(ROWS, ROWS)
def test_it_is_between_zero_and_one_and_the_same_both_ways(
    first: np.ndarray, second: np.ndarray
) -> None:
    one, two = (rows / rows.sum(-1, keepdims=True) for rows in (first, second))
    there, back = total_variation(one, two), total_variation(two, one)
    assert (there == back).all()
    assert (there >= 0).all() and (there <= 1 + sum_tolerance(one)).all()
