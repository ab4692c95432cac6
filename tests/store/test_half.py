"""Numbers of two bytes become float32 as NumPy makes them, to the bit."""

import numpy as np
import pytest

from attention_atlas.store.half import as_float32

EVERY = np.arange(2**16, dtype=np.uint16).view(np.float16)  # all numbers of half precision
FINITE = EVERY[np.isfinite(EVERY)]


@pytest.mark.parametrize(
    "numbers",
    [FINITE, FINITE[:62_000].reshape(4, 500, 31).swapaxes(0, 2), FINITE[::-3], FINITE[:0]],
    ids=["finite", "turned", "backwards", "none"],
)
def test_finite_numbers_are_moved_to_the_bit(numbers: np.ndarray) -> None:
    expected = numbers.astype(np.float32)
    found = as_float32(numbers)
    assert found.dtype == np.float32 and found.shape == expected.shape
    np.testing.assert_array_equal(found.view(np.uint32), expected.view(np.uint32))


def test_infinity_and_nan_stay_what_they_are() -> None:
    np.testing.assert_array_equal(as_float32(EVERY), EVERY.astype(np.float32))


def test_other_numbers_are_copied() -> None:
    numbers = np.arange(4, dtype=np.float32)
    found = as_float32(numbers)
    found += 1
    np.testing.assert_array_equal(numbers, [0, 1, 2, 3])
