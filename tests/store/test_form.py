"""Does a compressed mask or bias give back the very same numbers, and is it small?"""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from attention_atlas.store.form import CAUSAL, FULL, UNBOUNDED, Form, compress

Floats = npt.NDArray[np.float32]
Bools = npt.NDArray[np.bool_]

HIDING = [-1e4, float(np.finfo(np.float16).min), float(np.finfo(np.float32).min), -np.inf]

sides = st.integers(1, 9)
shapes = st.tuples(st.integers(1, 3), sides, sides)
numbers = st.floats(-50, 50, width=32)
masks = shapes.flatmap(lambda shape: arrays.arrays(np.bool_, shape))


def offsets(n: int, m: int) -> npt.NDArray[np.intp]:
    """(n, m): i − j."""
    return np.arange(n)[:, None] - np.arange(m)[None, :]


def floats(*shape: int) -> st.SearchStrategy[Floats]:
    return arrays.arrays(np.float32, shape, elements=numbers)


def hidden_by(value: float, seen: Bools, bias: Floats | float = 0.0) -> Floats:
    """An additive term as models make it."""
    return np.where(seen, bias, np.float32(value)).astype(np.float32)


def assert_same(form: Form, seen: Bools, bias: Floats | None = None) -> None:
    """What is seen is the same, and what is added to what is seen."""
    n, m = seen.shape[1:]
    heads = len(seen) if bias is None else max(len(seen), len(bias))
    visible = form.visible(n, m)
    assert (np.broadcast_to(visible, (heads, n, m)) == np.broadcast_to(seen, (heads, n, m))).all()
    added = form.added(n, m)
    got = np.broadcast_to(0.0 if added is None else added, (heads, n, m))
    want = np.broadcast_to(0.0 if bias is None else bias, (heads, n, m))
    where = np.broadcast_to(seen, (heads, n, m))
    assert (got[where] == want[where]).all()


# Masks -------------------------------------------------------------------------------------------


@given(masks)
def test_any_mask_comes_back(seen: Bools) -> None:
    assert_same(compress(seen), seen)


@given(masks, st.sampled_from(HIDING))
def test_any_additive_mask_comes_back_whatever_number_hides(seen: Bools, value: float) -> None:
    assert_same(compress(hidden_by(value, seen)), seen)


@given(masks, st.sampled_from(HIDING), st.data())
def test_any_bias_under_any_mask_comes_back(seen: Bools, value: float, data: st.DataObject) -> None:
    bias = data.draw(floats(*seen.shape))
    assert_same(compress(hidden_by(value, seen, bias)), seen, bias)


@given(sides, sides, st.sampled_from([True, *HIDING]))
def test_a_causal_mask_is_two_numbers(n: int, m: int, hides: float | bool) -> None:
    seen = (offsets(n, m) >= 0)[None]
    form = compress(seen if hides is True else hidden_by(hides, seen))
    assert_same(form, seen)
    assert form.hidden is None and form.bias is None
    assert n < 2 or m < 2 or form == CAUSAL


@given(sides, sides, st.integers(0, 9), st.integers(0, 9), st.sampled_from(HIDING))
def test_a_window_is_two_numbers(n: int, m: int, back: int, ahead: int, value: float) -> None:
    seen = ((offsets(n, m) <= back) & (offsets(n, m) >= -ahead))[None]
    if not seen.any(axis=-1).all():  # a row that may see nothing at all has bits of its own
        return
    form = compress(hidden_by(value, seen))
    assert_same(form, seen)
    assert form.hidden is None and form.bias is None


def test_windows_of_known_size_have_known_bounds() -> None:
    offset = offsets(8, 8)
    sliding = compress(((offset >= 0) & (offset < 3))[None])
    both_ways = compress((np.abs(offset) <= 2)[None])
    assert (sliding.low, sliding.high) == (0, 2)
    assert (both_ways.low, both_ways.high) == (-2, 2)


@given(sides, sides)
def test_a_mask_that_hides_nothing_is_no_mask(n: int, m: int) -> None:
    assert compress(np.ones((4, n, m), bool)) == FULL
    assert compress(np.zeros((1, n, m), np.float32)) == FULL


def test_a_causal_mask_with_a_hidden_key_keeps_bits_inside_the_band_only() -> None:
    seen = offsets(5, 5)[None] >= 0
    seen[:, :, 1] = False  # as a pad would
    form = compress(seen)
    assert (form.low, form.high) == (0, UNBOUNDED)
    assert form.hidden is not None
    assert form.hidden.sum() == 4  # rows 1 to 4 would else see key 1


@given(masks)
def test_heads_that_agree_share_one_mask(seen: Bools) -> None:
    form = compress(np.repeat(seen[:1], 3, axis=0))
    assert form.hidden is None or len(form.hidden) == 1


# Biases ------------------------------------------------------------------------------------------


@given(shapes, st.booleans(), st.data())
def test_a_bias_of_offsets_keeps_one_number_an_offset(
    shape: tuple[int, int, int], causal: bool, data: st.DataObject
) -> None:
    heads, n, m = shape
    table = data.draw(floats(heads, n + m - 1))
    bias = table[:, offsets(n, m) + m - 1]
    seen = (offsets(n, m) >= 0)[None] if causal else np.ones((1, n, m), bool)
    form = compress(hidden_by(-np.inf, seen, bias))
    assert_same(form, seen, bias)
    assert form.bias_kind in ("", "columns", "offsets")
    assert form.hidden is None


@given(shapes, st.sampled_from(HIDING), st.data())
def test_a_bias_of_keys_keeps_one_number_a_key(
    shape: tuple[int, int, int], value: float, data: st.DataObject
) -> None:
    heads, n, m = shape
    columns = data.draw(floats(heads, m))
    bias = np.broadcast_to(columns[:, None, :], shape).astype(np.float32)
    seen = (offsets(n, m) >= 0)[None]
    form = compress(hidden_by(value, seen, bias))
    assert_same(form, seen, bias)
    assert form.bias_kind in ("", "columns")


def test_each_kind_of_bias_takes_its_own_form() -> None:
    n, heads = 6, 2
    dice = np.random.default_rng(0)
    slopes = np.array([0.5, 0.25], np.float32)
    alibi = slopes[:, None, None] * np.arange(n, dtype=np.float32)[None, None, :].repeat(n, axis=1)
    near = dice.normal(size=(heads, 2 * n - 1)).astype(np.float32)[:, offsets(n, n) + n - 1]
    dense = dice.normal(size=(heads, n, n)).astype(np.float32)
    kinds = {"columns": alibi, "offsets": near, "dense": dense}
    shapes = {"columns": (2, 6), "offsets": (2, 11), "dense": (2, 6, 6)}
    for kind, bias in kinds.items():
        form = compress(bias)
        assert form.bias_kind == kind
        assert form.bias is not None and form.bias.shape == shapes[kind]


def test_heads_that_agree_share_one_bias() -> None:
    one = np.random.default_rng(0).normal(size=(1, 4, 4)).astype(np.float32)
    form = compress(np.repeat(one, 3, axis=0))
    assert form.bias is not None and form.bias.shape == (1, 4, 4)


@given(floats(2, 5, 5), st.floats(1e-6, 1e-3))
def test_a_tolerance_is_never_exceeded(bias: Floats, atol: float) -> None:
    form = compress(bias, atol)
    added = form.added(5, 5)
    assert (np.abs((0.0 if added is None else added) - bias) <= atol).all()


def test_rounding_within_the_tolerance_does_not_cost_the_small_form() -> None:
    table = np.linspace(-3, 3, 11, dtype=np.float32)
    noise = np.random.default_rng(0).uniform(-1e-7, 1e-7, (1, 6, 6)).astype(np.float32)
    bias = table[offsets(6, 6) + 5][None] + noise
    assert compress(bias).bias_kind == "dense"
    assert compress(bias, atol=1e-6).bias_kind == "offsets"


@pytest.mark.parametrize("value", HIDING)
def test_a_row_that_is_hidden_altogether_sees_nothing(value: float) -> None:
    seen = np.ones((1, 3, 3), bool)
    seen[0, 1] = False
    assert_same(compress(hidden_by(value, seen)), seen)
