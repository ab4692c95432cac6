"""How certain is a mean over inputs?

A bootstrap in one pass: each input is counted Poisson(1) times in each of 1,000 replicas when it is
read, so memory does not grow with the corpus. The interval is the middle
95 % of the replicas, widened as a t-interval is wider than a normal one, since a bootstrap of few
inputs is too narrow, but never beyond what the score can be. Below three inputs there is none.
"""

from functools import lru_cache

import numpy as np
from scipy.special import ndtri, stdtrit

from attention_atlas.measure.arrays import Bools, Floats

REPLICAS = 1000
LEVEL = 0.95
FEWEST = 3  # inputs that an interval needs
TOGETHER = 64  # inputs that are added to the replicas in one pass


class Sums:
    """Running means of columns over inputs; NaNs are left out."""

    def __init__(self, columns: int):
        self.sums, self.counts = np.zeros(columns), np.zeros(columns)

    def add(self, values: Floats) -> tuple[Floats, Bools]:
        """Add values (inputs, columns); returns them with 0 for NaN, and which are finite."""
        finite = np.isfinite(values)
        known = np.where(finite, values, 0).astype(np.float64)
        self.sums += known.sum(0)
        self.counts += finite.sum(0)
        return known, finite

    @property
    def value(self) -> Floats:
        """The means (columns,), NaN where no input had an answer."""
        return np.where(self.counts > 0, self.sums / np.maximum(self.counts, 1), np.nan)


class Mean:
    """Running means of columns over inputs, with bootstrap intervals."""

    def __init__(self, columns: int):
        self._all = Sums(columns)
        self._sums = np.zeros((REPLICAS, columns))
        self._counts = np.zeros((REPLICAS, columns), np.float32)
        self._waiting: list[tuple[Floats, Bools, Floats]] = []  # known, finite, draws

    def add(self, values: Floats, draws: Floats) -> None:
        """Add values (inputs, columns), NaN: no answer, with draws (inputs, REPLICAS)."""
        self._waiting.append((*self._all.add(values), draws))
        if sum(len(known) for known, _, _ in self._waiting) >= TOGETHER:
            self._add_waiting()

    def _add_waiting(self) -> None:
        """Add the inputs that wait to all replicas, which are many megabytes, in one pass."""
        if not self._waiting:
            return
        known, finite, draws = (np.concatenate(parts) for parts in zip(*self._waiting, strict=True))
        self._waiting = []
        self._sums += draws.T @ known
        # most columns have an answer for the same inputs
        kinds, kind = np.unique(finite, axis=1, return_inverse=True)
        self._counts += (draws.T @ kinds).astype(np.float32)[:, kind.reshape(-1)]

    @property
    def value(self) -> Floats:
        """The means (columns,), NaN where no input had an answer."""
        return self._all.value

    @property
    def counts(self) -> Floats:
        """The number of inputs that had an answer (columns,)."""
        return self._all.counts

    def interval(self, bounds: Floats | None = None) -> tuple[Floats, Floats]:
        """Compute the interval within bounds (columns, 2); returns low and high (columns,)."""
        self._add_waiting()
        replicas = np.where(self._counts > 0, self._sums / np.maximum(self._counts, 1), np.nan)
        known = np.where(self.counts >= FEWEST, replicas, 0.0)
        tail = (1 - LEVEL) / 2
        low, high = quantiles(known, [tail, 1 - tail])
        value = self.value
        wide = np.array([wider(int(count)) for count in self.counts])
        low, high = value + (low - value) * wide, value + (high - value) * wide
        if bounds is not None:  # rounding may leave the mean itself a hair outside
            low = np.minimum(np.maximum(low, bounds[:, 0]), value)
            high = np.maximum(np.minimum(high, bounds[:, 1]), value)
        few = self.counts < FEWEST
        return np.where(few, np.nan, low), np.where(few, np.nan, high)


def quantiles(values: Floats, wanted: list[float]) -> Floats:
    """Compute quantiles of columns (rows, columns) without their NaNs; returns (wanted, columns).

    As `np.nanquantile` does, which loops over the columns in Python.
    """
    ordered = np.sort(values, axis=0)  # NaNs last
    last = np.maximum((~np.isnan(values)).sum(0) - 1, 0)  # (columns,)
    place = np.asarray(wanted)[:, None] * last
    below = np.floor(place).astype(np.intp)
    low = np.take_along_axis(ordered, below, axis=0)
    high = np.take_along_axis(ordered, np.minimum(below + 1, last), axis=0)
    return np.asarray(low + (high - low) * (place - below))


@lru_cache(maxsize=4)  # all layers and heads share the draws of a shard
def draws(seed: int, inputs: tuple[int, ...]) -> Floats:
    """Draw how often each input counts in each replica; returns (inputs, REPLICAS)."""
    return np.stack(
        [np.random.default_rng([seed, number]).poisson(1, REPLICAS) for number in inputs]
    ).astype(np.float64)


@lru_cache(maxsize=1024)
def wider(count: int) -> float:
    """Get the factor that widens an interval: t quantile × √(n / (n − 1)) / normal quantile."""
    if count < FEWEST:
        return 1.0
    tail, free = (1 + LEVEL) / 2, count - 1
    return float(stdtrit(free, tail) / ndtri(tail) * np.sqrt(count / free))
