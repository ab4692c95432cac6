"""Do dice that keep what they drew draw the same numbers as others?"""

import numpy as np
import pytest

from attention_atlas.measure import dice
from attention_atlas.measure.dice import InputDice


def test_layers_draw_the_same_numbers_whether_they_were_kept_or_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dice, "WORTH", 100)
    plain = np.random.default_rng([3, 7])
    shapes = [(5, 3), (20, 30), (11, 10), (2, 2), (20, 30)]
    expected = [plain.random(shape, np.float32) for shape in shapes]
    for _ in range(2):
        drawn = InputDice(3, 7)
        for shape, numbers in zip(shapes, expected, strict=True):
            assert np.array_equal(drawn.random(shape, np.float32), numbers)
    assert not np.array_equal(InputDice(3, 8).random((20, 30), np.float32), expected[1])
