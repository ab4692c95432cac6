"""Which heads do the same?

The distance of two heads is the mean over rows of the Jensen–Shannon divergence of their weights,
in bits: 0 is the same, 1 is nothing in common. Rows are a sample of those with a choice, the same
for all heads. Clusters are cut from the tree of average linkage; the map puts heads by classical
scaling, so that distances on it are as near to the true ones as two numbers a head allow.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from attention_atlas.measure.look import Floats
from attention_atlas.measure.run import head_name
from attention_atlas.names.errors import InputError
from attention_atlas.store.passes import Piece, pieces
from attention_atlas.store.reader import StoredAtlas

ROWS = 128  # sampled
LONGEST = 512  # keys; a longer row says little more and costs much
CUT = 0.25  # bits; heads closer than that are one cluster


@dataclass(frozen=True)
class Alike:
    heads: tuple[str, ...]
    divergence: Floats  # (heads, heads), bits
    places: Floats  # (heads, 2)
    cluster: npt.NDArray[np.intp]  # (heads,), numbered by size

    def nearest(self, head: str, count: int = 5) -> list[tuple[str, float]]:
        row = self.divergence[self.heads.index(head)]
        order = [i for i in np.argsort(row, kind="stable") if self.heads[i] != head]
        return [(self.heads[i], float(row[i])) for i in order[:count]]


def alike(atlas: StoredAtlas, seed: int = 0) -> Alike:
    """All heads whose rows and keys are the same tokens, set against each other."""
    rows = sample_rows(atlas, seed)
    heads, attention = gather(atlas, rows)
    divergence = mean_divergence(attention, attention)
    np.fill_diagonal(divergence, 0)
    return Alike(tuple(heads), divergence, scaled(divergence), clusters(divergence))


def sample_rows(atlas: StoredAtlas, seed: int) -> dict[int, npt.NDArray[np.intp]]:
    """Input → rows, at most ROWS in all; first rows, which have no choice, are left out."""
    stream = atlas.towers[0].layers[0].queries
    frame = atlas.tokens(stream=stream)
    frame = frame[(frame["position"] >= 1) & (frame["position"] < LONGEST)]
    if not len(frame):
        raise InputError(f"{atlas.path.name} has no row with two keys to choose from")
    dice = np.random.default_rng(seed)
    chosen = frame.iloc[np.sort(dice.permutation(len(frame))[:ROWS])]
    return {
        int(str(number)): group["position"].to_numpy(np.intp)
        for number, group in chosen.groupby("input")
    }


def gather(
    atlas: StoredAtlas, rows: dict[int, npt.NDArray[np.intp]]
) -> tuple[list[str], list[Floats]]:
    """Head names, and for each input with rows (heads, rows, M)."""
    names, found = of_first_stream(atlas, set(rows), lambda one: one.weights[:, rows[one.input]])
    return names, [found[number] for number in sorted(found)]


def of_first_stream(
    atlas: StoredAtlas, inputs: set[int], take: Callable[[Piece], Floats]
) -> tuple[list[str], dict[int, Floats]]:
    """Heads that look from the first stream at itself, and what `take` gives of them by input."""
    names: list[str] = []
    found: dict[int, list[Floats]] = {number: [] for number in inputs}
    stream = atlas.towers[0].layers[0].queries
    for tower in atlas.towers:
        for layer in tower.layers:
            if not layer.queries == layer.keys == stream:
                continue
            names += [head_name(atlas, tower, layer, head) for head in range(layer.heads)]
            for shard in range(len(atlas.manifest.shards)):
                for piece in pieces(atlas, shard, tower, layer, only=inputs):
                    found[piece.input].append(take(piece))
    return names, {number: np.concatenate(parts) for number, parts in found.items()}


def mean_divergence(left: Sequence[Floats], right: Sequence[Floats]) -> Floats:
    """(A, B) bits, from lists of (A, rows, M) and (B, rows, M) on the same rows."""
    total = np.zeros((len(left[0]), len(right[0])))
    rows = 0
    for a, b in zip(left, right, strict=True):
        a, b = (one.astype(np.float32) for one in (a, b))
        own = [_entropy(one) for one in (a, b)]  # (A, rows), (B, rows)
        for head in range(len(a)):
            mixed = _entropy((a[head][None] + b) / 2)  # (B, rows)
            total[head] += (mixed - (own[0][head] + own[1]) / 2).sum(1)
        rows += a.shape[1]
    return np.clip(total / max(rows, 1), 0, 1)


def _entropy(weights: Floats) -> Floats:
    return np.asarray(-(weights * np.log2(np.maximum(weights, np.float32(1e-12)))).sum(-1))


def scaled(divergence: Floats) -> Floats:
    """(heads, 2): classical scaling of √divergence, which is a true distance."""
    count = len(divergence)
    centre = np.eye(count) - 1 / count
    inner = -centre @ ((divergence + divergence.T) / 2) @ centre / 2
    values, vectors = np.linalg.eigh(inner)
    top = np.argsort(values)[::-1][:2]
    places = vectors[:, top] * np.sqrt(np.maximum(values[top], 0))
    if places.shape[1] < 2:
        places = np.pad(places, ((0, 0), (0, 2 - places.shape[1])))
    signs = np.where(places[np.abs(places).argmax(0), [0, 1]] < 0, -1, 1)
    return np.asarray(places * signs)


def clusters(divergence: Floats, cut: float = CUT) -> npt.NDArray[np.intp]:
    """(heads,): average linkage, cut at `cut` bits; 0 is the largest cluster."""
    groups = [[head] for head in range(len(divergence))]
    away = divergence.astype(np.float64).copy()
    np.fill_diagonal(away, np.inf)
    while len(groups) > 1:
        flat = int(away.argmin())
        a, b = sorted(divmod(flat, len(groups)))
        if away[a, b] > cut:
            break
        sizes = len(groups[a]), len(groups[b])
        joined = (away[a] * sizes[0] + away[b] * sizes[1]) / sum(sizes)
        away[a], away[:, a] = joined, joined
        away[a, a] = np.inf
        away = np.delete(np.delete(away, b, 0), b, 1)
        groups[a] += groups.pop(b)
    labels = np.zeros(len(divergence), np.intp)
    for number, group in enumerate(sorted(groups, key=lambda one: (-len(one), min(one)))):
        labels[group] = number
    return labels
