"""How far may two correct computations of the same number be apart?

u is the unit roundoff of a type (2⁻²⁴ for float32, 2⁻¹¹ for float16, 2⁻⁵³ for float64): one
operation gives (exact result) · (1 + e) with |e| ≤ u. From this follow the bounds below. They hold
for every order of summation, number of threads and instruction set, so no machine exceeds them.

- A sum of n terms: |error| ≤ n u Σ|term|.
- A dot product of width D: |error| ≤ D u Σ|a b|. The products count, not the result, since they may
  cancel.
- A softmax whose logits are off by at most δ: |error of a weight| ≤ tanh(δ / 2) ≤ δ / 2. The odds
  of one key against the rest change by a factor of at most exp(2 δ), and a logistic curve rises by
  at most tanh(δ / 2) over a length of 2 δ.

Two computations in the same type may each be off by as much, so `sides` is 2. It is 1 where the
other side is float64 or a number worked out by hand.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

STORED = 1e-3  # what a receipt promises of weights read from float16 vectors (STORED_BOUND)
_AFTER_DOT = 6  # roundings of a logit: scale, soft cap (three), bias, subtraction of the maximum
_EXP = 8  # roundings of a weight: exp is off by at most 4 units in the last place, each 2 u


def unit(dtype: Any = np.float32) -> float:
    """Returns u, the largest relative error of one rounding to this type."""
    return float(np.finfo(dtype).eps) / 2


def sum_tolerance(terms: Any, dtype: Any = np.float32, sides: int = 2) -> float:
    """Returns the bound for sums over the last axis."""
    sizes = _absolute(terms)
    return sides * int(sizes.shape[-1]) * unit(dtype) * float(sizes.sum(-1).max(initial=0))


def dot_tolerance(a: Any, b: Any, dtype: Any = np.float32, sides: int = 2) -> float:
    """Returns the bound for products of rows (…, N, D) with rows (…, M, D)."""
    return sides * int(np.shape(a)[-1]) * unit(dtype) * _largest_product(a, b)


def softmax_tolerance(
    query: Any, key: Any, scale: float = 1.0, added: float = 0.0, sides: int = 2
) -> float:
    """Returns the bound for float32 attention weights of queries (…, N, D) and keys (…, M, D).

    `added` is the largest absolute bias or sink. A logit passes through the dot product and six
    further roundings; a weight passes through exp, a sum over M keys and a division.
    """
    keys, width = (int(size) for size in np.shape(key)[-2:])
    largest = abs(scale) * _largest_product(query, key) + added
    logit_error = (width + _AFTER_DOT) * unit() * largest
    return sides * (logit_error / 2 + (keys + _EXP) * unit())


def reading_tolerance(atlas: Any, input: int, head: str | None = None, sides: int = 2) -> float:
    """Returns the bound for weights read from stored queries and keys: of a head, or of any."""
    if head is None:
        heads = atlas.heads()["head"]
        return max(reading_tolerance(atlas, input, name, sides) for name in heads)
    terms = atlas.terms(head, input)
    bias = 0.0 if terms.added is None else float(np.abs(terms.added).max())
    added = max(bias, abs(terms.sink or 0.0))
    query, key = atlas.queries(head, input), atlas.keys(head, input)
    return softmax_tolerance(query, key, terms.scale, added, sides)


def chain_tolerance(values: Any, layers: int, width: int) -> float:
    """Returns the bound for what leaves so many layers in two float32 runs.

    A layer adds products of its width to the residual stream. Each is off by at most width · u of
    the largest value, and the errors of the layers add up.
    """
    return 2 * layers * width * unit() * float(_absolute(values).max(initial=0))


def step_tolerance(low: float = 0.0, high: float = 1.0, steps: int = 65535) -> float:
    """Returns half a step of a range that travels in so many steps, and its own rounding."""
    return 0.5 * (high - low) / steps + 4 * unit() * max(abs(low), abs(high))


def _largest_product(a: Any, b: Any) -> float:
    return float((_absolute(a) @ _absolute(b).swapaxes(-1, -2)).max(initial=0))


def _absolute(values: Any) -> npt.NDArray[np.float64]:
    return np.abs(np.asarray(values, np.float64))
