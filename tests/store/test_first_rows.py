"""Is the sum of a head's first weights over many inputs that of a plain softmax of each input?"""

from pathlib import Path

import numpy as np
import pytest

from attention_atlas.names.head import Head
from attention_atlas.store import first_rows
from attention_atlas.store.first_rows import sum_of_first_rows
from attention_atlas.store.rows import StoredLayer
from tests.store.test_rows import CASES, HEADS, Made, write

# Equal lengths side by side and apart, an input in two windows, keys that are no queries.
INPUTS = [[(5, 5)], [(3, 4), (5, 2)], [(5, 5)], [(5, 5)], [(2, 2)], [(5, 5)], [(9, 5)], [(5, 5)]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return write(tmp_path_factory.mktemp("first"), CASES, INPUTS)


@pytest.mark.parametrize("most", [3, 5, 12])
@pytest.mark.parametrize("largest", [40, 4_000_000])
def test_the_sum_is_that_of_each_input_alone(
    made: Made, most: int, largest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_rows, "LARGEST", largest)  # 40: not all fit into memory together
    some = [0, 1, 2, 4, 5, 6, 7]
    for layer in range(len(CASES)):
        for head in range(HEADS):
            expected = np.zeros((most, most))
            for number in some:
                part = made.expected[layer, number][head, :most, :most]
                expected[: part.shape[0], : part.shape[1]] += part
            found = sum_of_first_rows(made.atlas, some, Head("", layer, head), most)
            np.testing.assert_allclose(found, expected, rtol=0, atol=len(some) * made.atol)


def test_inputs_that_see_alike_are_computed_in_one_call(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    together: list[list[int]] = []
    real = StoredLayer.alike_weights

    def noted(self: StoredLayer, inputs: list[int], *given: int) -> object:
        together.append(list(inputs))
        return real(self, inputs, *given)

    monkeypatch.setattr(StoredLayer, "alike_weights", noted)
    sum_of_first_rows(made.atlas, range(len(INPUTS)), Head("", 0, 0), 8)
    assert together == [[2, 3, 5, 7]], "of the second shard; in the first, only one is of 5"


def test_weights_that_are_stored_are_read_one_by_one(
    made: Made, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delattr(StoredLayer, "alike_weights")
    kept = next(number for number, case in enumerate(CASES) if case.kept)
    found = sum_of_first_rows(made.atlas, [2, 3], Head("", kept, 0), 5)
    expected = made.expected[kept, 2][0] + made.expected[kept, 3][0]
    np.testing.assert_allclose(found, expected, rtol=0, atol=2 * made.atol)
