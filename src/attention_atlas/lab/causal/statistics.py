"""How certain are the effects of heads, and which differ from none?

An effect is a mean over inputs. Its interval is the bootstrap over inputs of `measure.boot`; its p
value is that of a t-test over inputs, and q is the false-discovery rate over all heads by Benjamini
and Hochberg: among heads with q ≤ 0.05, at most one in twenty is expected to have no effect.

With a budget, only a random part of the inputs is exact (m of n). Gradients of all inputs are the
control variate, d = exact − gradient on the part:

    estimate     mean of gradients over all + mean of d over the part        unbiased
    its error    var(d) / m · (1 − m / n)
    as a mean of a wider population it has the error of the corpus too: + var(exact) / n

d is often skewed: a few inputs carry much of it. So each side of the interval is the wider of
Student's t with m − 1 degrees of freedom and of t in a bootstrap of d. And where gradients spread
wider over all inputs than over the part, it has missed the extreme ones: the error grows by that.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import stdtr, stdtrit

from attention_atlas.measure import boot
from attention_atlas.measure.arrays import Floats

REPLICAS = 500  # of the bootstrap of t
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class Effects:
    """Mean effects of heads, each (heads,)."""

    effect: Floats
    low: Floats  # for inputs like these
    high: Floats
    corpus_low: Floats  # for the exact mean over these inputs
    corpus_high: Floats
    p: Floats


def exact(effects: Floats, seed: int) -> Effects:
    """Return the means of effects (inputs, heads) that are known for all inputs."""
    mean = boot.Mean(effects.shape[1])
    mean.add(effects, boot.draws(seed, tuple(range(len(effects)))))
    low, high = mean.interval()
    value = mean.value
    return Effects(value, low, high, value, value, _p(value, _error(effects), len(effects)))


def estimated(slopes: Floats, part: Floats, chosen: npt.NDArray[np.int64]) -> Effects:
    """Return the estimate from slopes (n, heads) and exact effects (m, heads) of chosen inputs."""
    n, m = len(slopes), len(part)
    apart = part - slopes[chosen]
    value = slopes.mean(0) + apart.mean(0)
    drawing = _error(apart) * np.sqrt(1 - m / n) * _missed(slopes, slopes[chosen])
    whole = np.sqrt(drawing**2 + part.var(0, ddof=1) / n)
    down, up = _reach(apart)
    return Effects(
        value, value - down * whole, value + up * whole,
        value - down * drawing, value + up * drawing, _p(value, whole, m),
    )  # fmt: skip


def _missed(slopes: Floats, part: Floats) -> Floats:
    """Return by how much slopes spread wider over all inputs than over a part, 1 or more."""
    wide, narrow = slopes.std(0, ddof=1), part.std(0, ddof=1)
    return np.asarray(np.maximum(np.where(narrow > 0, wide / np.maximum(narrow, _TINY), 1.0), 1.0))


def _reach(values: Floats) -> tuple[Floats, Floats]:
    """Return how many standard errors an interval reaches down and up, (heads,) each."""
    m = len(values)
    times = np.random.default_rng(m).multinomial(m, np.full(m, 1 / m), REPLICAS).astype(np.float64)
    centred = values - values.mean(0)
    means = times @ centred / m  # (REPLICAS, heads)
    spread = np.maximum(times @ centred**2 / m - means**2, 0) * m / (m - 1)
    t = means / np.sqrt(np.maximum(spread, _TINY) / m)
    tail = 100 * (1 - boot.LEVEL) / 2
    low, high = np.percentile(t, [tail, 100 - tail], axis=0)
    least = float(stdtrit(m - 1, (1 + boot.LEVEL) / 2))
    return np.maximum(high, least), np.maximum(-low, least)


def discoveries(p: Floats) -> Floats:
    """Return the false-discovery rate of each p value among all, by Benjamini and Hochberg."""
    known = np.flatnonzero(np.isfinite(p))
    order = known[np.argsort(p[known], kind="stable")]
    rates = p[order] * len(order) / np.arange(1, len(order) + 1)
    q = np.full(len(p), np.nan)
    q[order] = np.minimum(np.minimum.accumulate(rates[::-1])[::-1], 1.0)
    return q


def of_others(effect: Floats, layers: npt.NDArray[np.int64]) -> Floats:
    """Return for each head the mean effect of the other heads of its layer; NaN if it is alone."""
    control = np.full(len(effect), np.nan)
    for layer in np.unique(layers):
        heads = np.flatnonzero(layers == layer)
        if len(heads) > 1:
            control[heads] = (effect[heads].sum() - effect[heads]) / (len(heads) - 1)
    return control


def _error(values: Floats) -> Floats:
    """Return the standard error of means over inputs, NaN below the fewest for an interval."""
    if len(values) < boot.FEWEST:
        return np.full(values.shape[1], np.nan)
    return np.asarray(values.std(0, ddof=1) / np.sqrt(len(values)))


def _p(value: Floats, error: Floats, count: int) -> Floats:
    """Return two-sided p values of a t-test of means against zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(value == 0, 0.0, np.abs(value) / error)
    p = 2 * stdtr(max(count - 1, 1), -t)
    return np.asarray(np.where(np.isnan(error), np.nan, p))
