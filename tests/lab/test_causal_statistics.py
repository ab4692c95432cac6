"""Are intervals and false-discovery rates what they say? Against SciPy, and by simulation."""

import numpy as np
import pytest
from scipy import stats

from attention_atlas.lab.causal.statistics import discoveries, estimated, exact, of_others


def test_false_discovery_rates_are_those_of_scipy() -> None:
    p = np.random.default_rng(0).uniform(size=50) ** 3
    assert discoveries(p) == pytest.approx(stats.false_discovery_control(p, method="bh"))
    with_gap = np.insert(p, 7, np.nan)
    assert np.isnan(discoveries(with_gap)[7])
    assert np.delete(discoveries(with_gap), 7) == pytest.approx(discoveries(p))


def test_p_values_are_those_of_a_t_test() -> None:
    values = np.random.default_rng(1).normal(0.2, 1, (20, 6))
    assert exact(values, 0).p == pytest.approx(stats.ttest_1samp(values, 0).pvalue)


def test_a_head_without_any_effect_is_no_discovery() -> None:
    values = np.zeros((5, 2))
    values[:, 1] = [1, 2, 3, 4, 5]
    assert discoveries(exact(values, 0).p)[0] == 1.0


def test_false_discoveries_are_as_rare_as_promised() -> None:
    """90 heads of no effect and 10 with one: of those below 0.1 at most a tenth are false."""
    dice = np.random.default_rng(2)
    shares = []
    for _ in range(50):
        values = dice.normal(0, 1, (40, 100))
        values[:, :10] += 0.8
        found = discoveries(exact(values, 0).p) <= 0.1
        shares.append(found[10:].sum() / max(1, found.sum()))
    # The mean of 50 shares of spread ≤ 0.1 is within 3 · 0.1 / √50 of its expectation.
    assert np.mean(shares) <= 0.1 + 3 * 0.1 / np.sqrt(50)


def corpus(dice: np.random.Generator, heads: int) -> tuple[np.ndarray, np.ndarray]:
    """Exact effects and slopes (200, heads): slopes follow exact effects, off and biased."""
    effects = dice.exponential(1, (200, heads)) + dice.normal(0, 1, (200, heads))
    slopes = 0.7 * effects + dice.normal(0.5, 0.5, (200, heads))
    return effects, slopes


def test_an_estimate_is_unbiased_and_its_interval_holds_the_exact_mean() -> None:
    dice = np.random.default_rng(3)
    effects, slopes = corpus(dice, 40)
    truth = effects.mean(0)
    errors, inside = [], []
    for _ in range(500):
        chosen = np.sort(dice.choice(200, 30, replace=False))
        found = estimated(slopes, effects[chosen], chosen)
        errors.append(found.effect - truth)
        inside.append((found.corpus_low <= truth) & (truth <= found.corpus_high))
    spread = np.std(errors, 0) / np.sqrt(500)
    assert (np.abs(np.mean(errors, 0)) <= 4.5 * spread).all()  # one in 150,000 for each of 40
    # 20,000 answers, those of a head alike to each other: between the 92 and 98 % that are asked.
    assert 0.92 <= np.mean(inside) <= 0.98


def test_slopes_make_an_estimate_less_noisy() -> None:
    dice = np.random.default_rng(4)
    effects, slopes = corpus(dice, 1)
    plain, with_slopes = [], []
    for _ in range(400):
        chosen = np.sort(dice.choice(200, 30, replace=False))
        plain.append(effects[chosen].mean())
        with_slopes.append(estimated(slopes, effects[chosen], chosen).effect[0])
    assert np.var(with_slopes) < 0.5 * np.var(plain)


def test_the_control_of_a_lone_head_is_not_known() -> None:
    control = of_others(np.array([1.0, 2.0, 3.0]), np.array([0, 0, 1]))
    assert control[:2].tolist() == [2.0, 1.0] and np.isnan(control[2])
