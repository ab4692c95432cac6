"""Are the points of a head's map ordered by a known value of their patches?

The map is the plane of the two strongest principal axes of a head's queries and keys, each centred
on its own mean. The score is the rank correlation (Spearman's) of places and values along the
direction that fits best. For cyclic values such as hue, it is the rank correlation of the value
with the angle about the centre (Mardia's, from 0 to 1); for names, the correlation ratio of ranks.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from attention_atlas.images.upright import CYCLIC
from attention_atlas.measure.arrays import Floats
from attention_atlas.names.head import Head
from attention_atlas.store.patch_places import seated
from attention_atlas.store.reader import StoredAtlas

KNOWN = "known "
SEEN = ("brightness", "hue")  # of the picture itself, for pictures that are no probes
DIRECTIONS = 36
DEALT = 20  # times that values are shuffled among the inputs, for chance
MOST = 5_000  # patches sampled
SOURCE = "Yeh et al. 2023, AttentionViz; Mardia 1975 for values that come round"


@dataclass(frozen=True)
class Values:
    """One value a token; NaN or None where a token has none."""

    name: str
    values: npt.NDArray[Any]
    period: float | None

    @property
    def are_names(self) -> bool:
        return self.values.dtype == object


def order_rows(atlas: StoredAtlas, seed: int = 0) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Score every head by every known value; returns rows for the table of scores, and words."""
    rows: list[dict[str, Any]] = []
    words: dict[str, dict[str, str]] = {}
    for tower in atlas.towers:
        for layer in tower.layers:
            if layer.queries != layer.keys or not atlas.has("key", layer.layer, tower.name):
                continue
            whole = atlas.vector_tokens(layer.queries)
            rows_of = some_rows(whole, seed)
            tokens = whole.iloc[rows_of]
            known = list(known_values(tokens))
            if not known:
                continue
            prefix = tower.name if len(atlas.towers) > 1 else ""
            for number in range(layer.heads):
                head = Head(prefix, layer.layer, number)
                plane = principal_plane(atlas.queries(head)[rows_of], atlas.keys(head)[rows_of])
                for values in known:
                    rows.append(_row(str(head), values, plane, tokens["input"].to_numpy(), seed))
                    words[f"orders-{values.name}"] = _words(values)
    return rows, words


def some_rows(tokens: pd.DataFrame, seed: int) -> npt.NDArray[np.intp]:
    """Sample patches at the same positions of each input, about MOST in all; returns their rows."""
    patch = seated(tokens)
    position = tokens["position"].to_numpy()
    positions = np.unique(position[patch])
    if patch.sum() > MOST:
        count = max(1, int(len(positions) * MOST / patch.sum()))
        positions = np.random.default_rng(seed).choice(positions, count, replace=False)
    return np.flatnonzero(patch & np.isin(position, positions))


def known_values(tokens: pd.DataFrame) -> Iterator[Values]:
    """Yield the known values of patches: those that probes were made with, else their colours."""
    names = [name for name in tokens.columns if str(name).startswith(KNOWN)]
    for name in names or [name for name in SEEN if name in tokens]:
        bare = str(name).removeprefix(KNOWN)
        values = tokens[name].to_numpy()
        if values.dtype != object:
            values = values.astype(np.float64)
        if len({value for value in values if value is not None and value == value}) > 1:
            yield Values(bare, values, CYCLIC.get(bare))


def principal_plane(queries: Floats, keys: Floats) -> Floats:
    """Project queries and keys onto their two strongest axes; returns (2, N, 2)."""
    both = np.stack([side - side.mean(0) for side in (queries, keys)]).astype(np.float64)
    flat = both.reshape(-1, both.shape[-1])
    _, axes = np.linalg.eigh(flat.T @ flat)
    plane = both @ axes[:, ::-1][:, :2]
    return plane if plane.shape[-1] == 2 else np.pad(plane, ((0, 0), (0, 0), (0, 1)))


def _row(
    head: str, known: Values, plane: Floats, inputs: npt.NDArray[Any], seed: int
) -> dict[str, Any]:
    given = _given(known.values)
    score = scorer(plane[:, given], known.period)
    by_chance = [
        score(values[given])
        for values in _shuffled(known.values, inputs, seed)
        if _given(values[given]).all()
    ]
    return {
        "head": head, "measure": f"orders-{known.name}", "value": score(known.values[given]),
        "low": np.nan, "high": np.nan, "n": len(np.unique(inputs)),
        "chance": float(np.mean(by_chance)) if by_chance else np.nan,
    }  # fmt: skip


def _given(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    return np.array([value is not None and value == value for value in values], bool)


def _shuffled(
    values: npt.NDArray[Any], inputs: npt.NDArray[Any], seed: int
) -> Iterator[npt.NDArray[Any]]:
    """Yield the values with the inputs shuffled; patches keep their places within an input."""
    parts = [values[inputs == number] for number in np.unique(inputs)]
    if len(parts) < 3 or len({len(part) for part in parts}) > 1:
        return
    dice = np.random.default_rng(seed)
    for _ in range(DEALT):
        yield np.concatenate([parts[number] for number in dice.permutation(len(parts))])


def order(plane: Floats, values: npt.NDArray[Any], period: float | None) -> float:
    """Score how well (sides, N, 2) places on a plane are ordered by N values; returns 0 … 1."""
    return scorer(plane, period)(values)


def scorer(plane: Floats, period: float | None) -> Callable[[npt.NDArray[Any]], float]:
    """Make a function that gives `order` of values at these places, which are ranked only once."""
    sides, count = plane.shape[:2]
    points = plane.reshape(-1, 2)
    if count < 3:
        return lambda values: float("nan")
    if period is not None:
        about = _about(points)
        return lambda values: _round(about, np.tile(values.astype(np.float64), sides) / period)
    angles = np.pi * np.arange(DIRECTIONS) / DIRECTIONS
    along = points @ np.stack([np.cos(angles), np.sin(angles)])  # (points, directions)
    ranks = _ranks(along.T)
    centred = ranks - ranks.mean(1, keepdims=True)
    size = np.sqrt(np.square(centred).sum(1))
    unit = centred / np.where(size > 1e-12, size, 1)[:, None]

    def best(values: npt.NDArray[Any]) -> float:
        if values.dtype == object:
            return float(np.sqrt(_ratios(unit, np.tile(values, sides)).max()))
        wanted = np.tile(_ranks(values.astype(np.float64)), sides)
        wanted = wanted - wanted.mean()
        length = float(np.sqrt(np.square(wanted).sum()))
        return float(np.abs(unit @ wanted).max() / length) if length > 1e-12 else 0.0

    return best


def _ranks(values: Floats) -> Floats:
    """Rank values from 0 along the last axis; equal values share the mean of their ranks."""
    from scipy.stats import rankdata  # takes a second to import, and only pictures need it

    return np.asarray(rankdata(values, axis=-1) - 1)


def _about(points: Floats) -> Floats:
    """Rank points by their angle about their centre; returns the ranks scaled to 0 … 2π."""
    spread = points.std(0)
    centred = (points - points.mean(0)) / np.where(spread > 1e-12, spread, 1)
    return 2 * np.pi * _ranks(np.arctan2(centred[:, 1], centred[:, 0])) / len(points)


def _round(about: Floats, turns: Floats) -> float:
    """Correlate angles with values given in turns, as ranks on a circle, in either direction."""
    other = 2 * np.pi * _ranks(turns) / len(turns)
    return float(
        max(abs(np.exp(1j * (about - other)).mean()), abs(np.exp(1j * (about + other)).mean()))
    )


def _ratios(unit: Floats, names: npt.NDArray[Any]) -> Floats:
    """Compute the share of the variance of ranks that is between names; returns (directions,)."""
    parts = [unit[:, names == name] for name in set(names)]
    return np.asarray(sum(part.shape[1] * np.square(part.mean(1)) for part in parts))


def _words(known: Values) -> dict[str, str]:
    statistic = "circular rank correlation" if known.period else "rank correlation"
    statistic = "correlation ratio of ranks" if known.are_names else statistic
    return {
        "title": f"orders by {known.name}",
        "formula": f"largest {statistic} of {known.name} with places on the head's principal plane",
        "source": SOURCE,
        "chance": "the values shuffled among the inputs",
    }
