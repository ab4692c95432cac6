"""Which keys are sinks: looked at far more than the others, whatever is asked?

A key is a sink of some heads if it gets at least 5 % of their attention, five times as much as the
median key, and one and a half times as much as it would if every row looked evenly at all it sees.
Rows that see one key alone do not count: they have no choice. It may be the first token, [SEP], a
comma, a register or a patch at the border.
"""

import numpy as np
import numpy.typing as npt

SINK_SHARE = 0.05  # of all attention
SINK_TIMES = 5.0  # times the median key
SINK_OVER_EVEN = 1.5  # times what even attention would give it

Floats = npt.NDArray[np.floating]


def sinks_of(mass: Floats, even: Floats | None = None) -> npt.NDArray[np.intp]:
    """Return the sinks among keys, by the attention that each gets (M,).

    even  what each would get if rows looked evenly at all they see; None: all the same
    """
    return np.flatnonzero(are_sinks(mass, even))


def are_sinks(mass: Floats, even: Floats | None = None) -> npt.NDArray[np.bool_]:
    """Tell which keys are sinks of each head, bool (…, M), by what each gets (…, M); even (M,)."""
    total = mass.sum(-1, keepdims=True)
    if mass.shape[-1] < 3:
        return np.zeros(mass.shape, bool)
    share = np.where(total > 0, mass / np.where(total > 0, total, 1), 0)
    same = 1 / mass.shape[-1] if even is None else even / max(float(even.sum()), 1e-30)
    found = (share >= SINK_SHARE) & (share >= SINK_OVER_EVEN * same)
    some = found.any(-1)  # a median costs more than the rest, and most heads have no such key
    if some.any():
        usual = np.median(share[some], axis=-1, keepdims=True)
        found[some] &= share[some] >= SINK_TIMES * usual
    return np.asarray(found)


def even_mass(seen: npt.NDArray[np.bool_]) -> Floats:
    """Return what keys would get (M,) if each row with a choice looked evenly at what it sees."""
    count = seen.sum(1)
    choice = count > 1
    return np.asarray((seen[choice] / count[choice][:, None]).sum(0))


def column_mass(weights: npt.NDArray[np.float32], seen: npt.NDArray[np.bool_]) -> Floats:
    """Return the attention that each key gets (…, M), of weights (…, N, M), rows with a choice."""
    choice = seen.sum(1) > 1
    return np.asarray(weights[..., choice, :].sum(-2, dtype=np.float64))
