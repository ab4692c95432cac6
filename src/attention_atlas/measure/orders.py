"""Does a head's map lie in the order of something that is known of its patches?

The map is that of the two strongest principal axes of a head's queries and keys, each about its own
mean. Along the direction of that plane that fits best, the rank correlation (Spearman's) of places
and values; for values that come round, as hue does, the rank correlation of the angle about the
middle with the value (Mardia's, as a length from 0 to 1); for names, the correlation ratio of
ranks.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from attention_atlas.head import Head
from attention_atlas.measure.look import Floats
from attention_atlas.picture import CYCLIC
from attention_atlas.store.atlas import Atlas

KNOWN = "known "
SEEN = ("brightness", "hue")  # of the picture itself, where nothing better is known
DIRECTIONS = 60
DEALT = 20  # times that values are dealt out anew among the inputs, for chance
MOST = 20_000  # tokens looked at
SOURCE = "Yeh et al. 2023, AttentionViz; Mardia 1975 for values that come round"


@dataclass(frozen=True)
class Values:
    """One value a token; NaN or None where it has none."""

    name: str
    values: npt.NDArray[Any]
    period: float | None

    @property
    def are_names(self) -> bool:
        return self.values.dtype == object


def order_rows(atlas: Atlas, seed: int = 0) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Rows for the table of scores, and what goes with each score's name."""
    rows: list[dict[str, Any]] = []
    told: dict[str, dict[str, str]] = {}
    for tower in atlas.towers:
        for layer in tower.layers:
            if layer.queries != layer.keys or not atlas.has("key", layer.layer, tower.name):
                continue
            tokens = atlas.tokens(stream=layer.queries)
            known = list(known_values(tokens))
            if not known:
                continue
            prefix = tower.name if len(atlas.towers) > 1 else ""
            for number in range(layer.heads):
                head = Head(prefix, layer.layer, number)
                plane = principal_plane(atlas.queries(head), atlas.keys(head))
                for one in known:
                    rows.append(_row(str(head), one, plane, tokens["input"].to_numpy(), seed))
                    told[f"orders-{one.name}"] = _words(one)
    return rows, told


def known_values(tokens: pd.DataFrame) -> Iterator[Values]:
    """What is known of patches: of probes what they were made with, else their colours."""
    names = [name for name in tokens.columns if str(name).startswith(KNOWN)]
    for name in names or [name for name in SEEN if name in tokens]:
        bare = str(name).removeprefix(KNOWN)
        values = tokens[name].to_numpy()
        if values.dtype != object:
            values = values.astype(np.float64)
        if len({one for one in values if one is not None and one == one}) > 1:
            yield Values(bare, values, CYCLIC.get(bare))


def principal_plane(queries: Floats, keys: Floats) -> Floats:
    """(2, N, 2): where queries and keys lie on their two strongest axes."""
    both = np.stack([side - side.mean(0) for side in (queries, keys)]).astype(np.float64)
    flat = both.reshape(-1, both.shape[-1])
    _, axes = np.linalg.eigh(flat.T @ flat)
    plane = both @ axes[:, ::-1][:, :2]
    return plane if plane.shape[-1] == 2 else np.pad(plane, ((0, 0), (0, 0), (0, 1)))


def _row(
    head: str, known: Values, plane: Floats, inputs: npt.NDArray[Any], seed: int
) -> dict[str, Any]:
    there = _there(known.values)
    if there.sum() * 2 > MOST:
        chosen = np.flatnonzero(there)[:: int(np.ceil(there.sum() * 2 / MOST))]
        there = np.zeros_like(there)
        there[chosen] = True
    value = order(plane[:, there], known.values[there], known.period)
    dealt = [
        order(plane[:, there], values[there], known.period)
        for values in _dealt(known.values, inputs, seed)
        if _there(values)[there].all()
    ]
    return {
        "head": head, "measure": f"orders-{known.name}", "value": value, "low": np.nan,
        "high": np.nan, "n": len(np.unique(inputs)),
        "chance": float(np.mean(dealt)) if dealt else np.nan,
    }  # fmt: skip


def _there(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    return np.array([one is not None and one == one for one in values], bool)


def _dealt(
    values: npt.NDArray[Any], inputs: npt.NDArray[Any], seed: int
) -> Iterator[npt.NDArray[Any]]:
    """The values with the inputs changed about: patches keep their places."""
    parts = [values[inputs == number] for number in np.unique(inputs)]
    if len(parts) < 3 or len({len(part) for part in parts}) > 1:
        return
    dice = np.random.default_rng(seed)
    for _ in range(DEALT):
        yield np.concatenate([parts[at] for at in dice.permutation(len(parts))])


def order(plane: Floats, values: npt.NDArray[Any], period: float | None) -> float:
    """0 … 1: how well (sides, N, 2) places on a plane lie in the order of N values."""
    sides, count = plane.shape[:2]
    if count < 3:
        return float("nan")
    points = plane.reshape(-1, 2)
    repeated = np.tile(values, sides)
    if period is not None:
        return _round(points, repeated.astype(np.float64) / period * 2 * np.pi)
    angles = np.pi * np.arange(DIRECTIONS) / DIRECTIONS
    along = points @ np.stack([np.cos(angles), np.sin(angles)])  # (points, directions)
    ranks = np.stack([_ranks(one) for one in along.T])
    if repeated.dtype == object:
        return float(np.sqrt(max(_ratio(one, repeated) for one in ranks)))
    found = np.abs([_correlation(one, _ranks(repeated.astype(np.float64))) for one in ranks])
    return float(found.max())


def _ranks(values: Floats) -> Floats:
    """From 0; equal values share the mean of their ranks."""
    return np.asarray(pd.Series(values).rank().to_numpy(np.float64) - 1)


def _correlation(a: Floats, b: Floats) -> float:
    a, b = a - a.mean(), b - b.mean()
    size = float(np.sqrt((a * a).sum() * (b * b).sum()))
    return float((a * b).sum() / size) if size > 1e-12 else 0.0


def _round(points: Floats, turns: Floats) -> float:
    """Both as ranks about a circle: how far they turn together, one way or the other."""
    spread = points.std(0)
    centred = (points - points.mean(0)) / np.where(spread > 1e-12, spread, 1)
    about = np.arctan2(centred[:, 1], centred[:, 0])
    a, b = (2 * np.pi * _ranks(one) / len(points) for one in (about, turns))
    return float(max(abs(np.exp(1j * (a - b)).mean()), abs(np.exp(1j * (a + b)).mean())))


def _ratio(ranks: Floats, names: npt.NDArray[Any]) -> float:
    """The share of the variance of ranks that lies between names."""
    middle, total = ranks.mean(), float(((ranks - ranks.mean()) ** 2).sum())
    parts = [ranks[names == name] for name in set(names)]
    between = sum(len(part) * (part.mean() - middle) ** 2 for part in parts)
    return float(between) / total if total > 0 else 0.0


def _words(known: Values) -> dict[str, str]:
    what = "circular rank correlation" if known.period else "rank correlation"
    what = "correlation ratio of ranks" if known.are_names else what
    return {
        "title": f"orders by {known.name}",
        "formula": f"largest {what} of {known.name} with places on the head's principal plane",
        "source": SOURCE,
        "chance": "the values of the inputs dealt out anew among them",
    }
