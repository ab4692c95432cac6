"""Kinds: right on planted patterns, silent on random attention, and worked out by hand."""

from collections import Counter

import numpy as np
import numpy.typing as npt
import pytest

import attention_atlas as aa
from attention_atlas.measure.kinds import KINDS
from tests.measure.patterns import DRAWN, draw_page, random_attention

DRAWS = 2000


@pytest.mark.full
def test_at_least_95_in_100_planted_patterns_get_their_name() -> None:
    dice = np.random.default_rng(20240)
    right: Counter[str] = Counter()
    for number in range(DRAWS):
        planted = list(DRAWN)[number % len(DRAWN)]
        page = draw_page(dice)
        (kind,) = aa.classify(DRAWN[planted](page, dice), page.special)
        right[planted] += kind.name == planted
    assert sum(right.values()) >= 0.95 * DRAWS, right
    assert min(right.values()) >= 0.85 * DRAWS / len(DRAWN), right


@pytest.mark.full
def test_random_attention_gets_no_confident_label() -> None:
    dice = np.random.default_rng(7)
    for _ in range(500):
        page = draw_page(dice)
        (kind,) = aa.classify(random_attention(page, dice), page.special)
        assert not kind.confident, (page.n, page.causal, kind)


def pure(n: int, column: int | None = None, offset: int | None = None) -> npt.NDArray[np.float64]:
    weights = np.zeros((n, n))
    for row in range(n):
        weights[row, column if column is not None else max(0, row - (offset or 0))] = 1
    return weights


def test_a_pure_previous_token_head_is_parallel_with_nothing_to_spare() -> None:
    (kind,) = aa.classify(pure(20, offset=1))
    assert (kind.name, kind.detail) == ("parallel", "1 before")
    assert kind.evidence["parallel"] == pytest.approx(1)
    assert kind.confident


def test_all_on_the_first_token_is_radioactive_even_where_it_is_a_sink() -> None:
    (kind,) = aa.classify(pure(20, column=0))
    assert (kind.name, kind.detail) == ("radioactive", "to the first token")
    assert (kind.sink, kind.without_sink) == (1, None)


def test_an_even_causal_head_is_homogeneous_with_no_other_evidence() -> None:
    even = np.tri(12) / np.arange(1, 13)[:, None]
    (kind,) = aa.classify(even)
    assert kind.name == "homogeneous"
    assert kind.evidence == pytest.approx(
        {"parallel": 0, "radioactive": 0, "homogeneous": 1, "X-type": 0, "compound": 0}, abs=1e-4
    )


def test_half_on_each_end_is_x_type() -> None:
    weights = (pure(16, column=0) + pure(16, column=15)) / 2
    (kind,) = aa.classify(weights)
    assert kind.name == "X-type"
    assert kind.evidence["X-type"] == pytest.approx(1)


def test_a_sink_that_hides_a_parallel_head_is_set_aside_and_both_answers_are_kept() -> None:
    weights = 0.8 * pure(30, column=0) + 0.2 * pure(30, offset=2)
    (kind,) = aa.classify(weights)
    assert (kind.name, kind.detail) == ("parallel", "2 before")
    assert (kind.with_sink, kind.without_sink) == ("radioactive", "parallel")
    assert kind.sink == pytest.approx((0.8 * 27 + 3) / 30)  # three rows have nothing 2 before them


def test_delimiters_count_as_an_end_only_when_they_are_named() -> None:
    weights = pure(18, column=9)
    marks = np.zeros(18, bool)
    marks[9] = True
    assert aa.classify(weights, marks)[0].name == "radioactive"
    assert aa.classify(weights)[0].name == "compound"


def test_every_head_gets_a_kind() -> None:
    weights = np.stack([pure(9, column=0), pure(9, offset=1)])
    assert [kind.name for kind in aa.classify(weights)] == ["radioactive", "parallel"]
    assert all(kind.name in KINDS for kind in aa.classify(np.full((3, 5, 5), 0.2)))


@pytest.mark.parametrize(
    ("weights", "special", "told"),
    [
        (np.ones((2, 2)) / 2, None, "at least 3 tokens"),
        (np.ones((1, 1, 4, 4)), None, r"\(1, 1, 4, 4\)"),
        (-np.ones((4, 4)), None, "after the softmax"),
        (np.ones((4, 4)) / 4, [True, False], "special marks 2 tokens and the weights have 4"),
    ],
)
def test_what_cannot_be_classified_is_told(
    weights: npt.NDArray[np.float64], special: list[bool] | None, told: str
) -> None:
    with pytest.raises(aa.InputError, match=told):
        aa.classify(weights, special)
