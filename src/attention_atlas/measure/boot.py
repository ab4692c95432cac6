"""How sure is a mean over inputs?

A bootstrap that needs no second look at the data: each input is counted Poisson(1) times in each of
1,000 replicas as it passes by, so memory does not grow with the corpus. The interval is the middle
95 % of the replicas, widened as a t-interval is wider than a normal one, since a bootstrap of few
inputs is too narrow, but never beyond what the score can be. Below three inputs there is none.
"""

from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating]

REPLICAS = 1000
LEVEL = 0.95
FEWEST = 3  # inputs that an interval needs


@dataclass
class Mean:
    """The mean of some columns over inputs, each without its NaNs, as inputs pass by."""

    columns: int
    sums: Floats = field(init=False)
    counts: Floats = field(init=False)
    _sums: Floats = field(init=False)
    _counts: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.sums, self.counts = np.zeros(self.columns), np.zeros(self.columns)
        self._sums = np.zeros((REPLICAS, self.columns))
        self._counts = np.zeros((REPLICAS, self.columns), np.float32)

    def add(self, values: Floats, draws: Floats) -> None:
        """Some inputs: values (inputs, columns), NaN for no answer; draws (inputs, REPLICAS)."""
        there = np.isfinite(values)
        known = np.where(there, values, 0).astype(np.float64)
        self.sums += known.sum(0)
        self.counts += there.sum(0)
        self._sums += draws.T @ known
        self._counts += draws.T.astype(np.float32) @ there.astype(np.float32)

    @property
    def value(self) -> Floats:
        """(columns,), NaN where no input had an answer."""
        return np.where(self.counts > 0, self.sums / np.maximum(self.counts, 1), np.nan)

    def interval(self, bounds: Floats | None = None) -> tuple[Floats, Floats]:
        """(columns,) each: low and high, within bounds (columns, 2) where there are some."""
        replicas = np.where(self._counts > 0, self._sums / np.maximum(self._counts, 1), np.nan)
        known = np.where(self.counts >= FEWEST, replicas, 0.0)
        tail = 100 * (1 - LEVEL) / 2
        low, high = np.nanpercentile(known, [tail, 100 - tail], axis=0)
        value = self.value
        wide = np.array([wider(int(count)) for count in self.counts])
        low, high = value + (low - value) * wide, value + (high - value) * wide
        if bounds is not None:  # rounding may leave the mean itself a hair outside
            low = np.minimum(np.maximum(low, bounds[:, 0]), value)
            high = np.maximum(np.minimum(high, bounds[:, 1]), value)
        few = self.counts < FEWEST
        return np.where(few, np.nan, low), np.where(few, np.nan, high)


def draws(seed: int, inputs: list[int]) -> Floats:
    """(inputs, REPLICAS): how often each input counts in each replica; the same for all heads."""
    return np.stack(
        [np.random.default_rng([seed, number]).poisson(1, REPLICAS) for number in inputs]
    ).astype(np.float64)


def wider(count: int) -> float:
    """t quantile × √(n / (n − 1)) over the normal quantile (Cornish–Fisher series)."""
    if count < FEWEST:
        return 1.0
    z, free = NormalDist().inv_cdf((1 + LEVEL) / 2), count - 1
    t = (
        z
        + (z**3 + z) / (4 * free)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * free**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * free**3)
    )
    return float(t * np.sqrt(count / free) / z)
