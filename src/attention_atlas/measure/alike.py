"""Which heads look at the same tokens?

The distance of two heads is the mean over rows of the Jensen–Shannon divergence of their weights,
in bits: 0 is the same, 1 is nothing in common. Rows are a sample of those with a choice, the same
for all heads. Clusters are cut from the tree of average linkage; the map puts heads by classical
scaling, so that distances on it are as near to the true ones as two numbers a head allow.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from attention_atlas.measure.arrays import Floats
from attention_atlas.measure.run import head_name
from attention_atlas.names.errors import InputError
from attention_atlas.store.form import Ints
from attention_atlas.store.reader import StoredAtlas

ROWS = 128  # sampled
LONGEST = 512  # keys; a longer row adds little and costs much
CUT = 0.25  # bits; closer heads are one cluster


@dataclass(frozen=True)
class HeadsAlike:
    """How far all heads of an atlas are from each other, with their clusters."""

    heads: tuple[str, ...]
    divergence: Floats  # (heads, heads), bits
    places: Floats  # (heads, 2)
    cluster: npt.NDArray[np.intp]  # (heads,), numbered by size

    def nearest(self, head: str, count: int = 5) -> list[tuple[str, float]]:
        """Get the heads nearest to a head with their distances in bits, nearest first."""
        row = self.divergence[self.heads.index(head)]
        order = [place for place in np.argsort(row, kind="stable") if self.heads[place] != head]
        return [(self.heads[place], float(row[place])) for place in order[:count]]


def alike(atlas: StoredAtlas, seed: int = 0) -> HeadsAlike:
    """Compare all heads whose rows and keys are the same tokens; returns distances and clusters."""
    rows = sample_rows(atlas, seed)
    heads, attention = gather(atlas, rows)
    divergence = mean_divergence(attention, attention)
    np.fill_diagonal(divergence, 0)
    return HeadsAlike(tuple(heads), divergence, scaled(divergence), clusters(divergence))


def sample_rows(atlas: StoredAtlas, seed: int) -> dict[int, Ints]:
    """Draw at most ROWS rows; returns input → rows. First rows have no choice and are left out."""
    stream = atlas.towers[0].layers[0].queries
    atlas.need_vectors()
    frame = atlas.vector_tokens(stream)
    frame = frame[(frame["position"] >= 1) & (frame["position"] < LONGEST)]
    if not len(frame):
        raise InputError(
            f"{atlas.path.name} has no row that sees two keys; capture inputs of two tokens or more"
        )
    dice = np.random.default_rng(seed)
    chosen = frame.iloc[np.sort(dice.permutation(len(frame))[:ROWS])]
    return {
        int(str(number)): group["position"].to_numpy(np.intp)
        for number, group in chosen.groupby("input")
    }


def gather(atlas: StoredAtlas, rows: Mapping[int, Ints]) -> tuple[list[str], list[Floats]]:
    """Read some rows of all heads that look from the first stream at itself.

    Returns the heads' names and, for each input in the order of `rows`, weights (heads, rows, M).
    """
    names: list[str] = []
    attention: dict[int, list[Floats]] = {number: [] for number in rows}
    stream = atlas.towers[0].layers[0].queries
    for tower in atlas.towers:
        for layer in tower.layers:
            if not layer.queries == layer.keys == stream:
                continue
            names += [head_name(atlas, tower, layer, head) for head in range(layer.heads)]
            for shard in range(len(atlas.manifest.shards)):
                stored = atlas.held_layer(shard, tower, layer)
                for number in set(stored.inputs()) & set(rows):
                    weights = stored.weights(number, np.arange(layer.heads), rows[number])
                    attention[number].append(weights)
    return names, [np.concatenate(attention[number]) for number in rows]


def mean_divergence(left: Sequence[Floats], right: Sequence[Floats]) -> Floats:
    """Compare heads on the same rows, (A, rows, M) with (B, rows, M); returns (A, B) in bits."""
    total = np.zeros((len(left[0]), len(right[0])))
    rows = 0
    for a, b in zip(left, right, strict=True):
        a, b = (weights.astype(np.float32) for weights in (a, b))
        entropies = [_entropy(weights) for weights in (a, b)]  # (A, rows), (B, rows)
        for head in range(len(a)):
            mixed = _entropy((a[head][None] + b) / 2)  # (B, rows)
            total[head] += (mixed - (entropies[0][head] + entropies[1]) / 2).sum(1)
        rows += a.shape[1]
    return np.clip(total / max(rows, 1), 0, 1)


def _entropy(weights: Floats) -> Floats:
    return np.asarray(-(weights * np.log2(np.maximum(weights, np.float32(1e-12)))).sum(-1))


def scaled(divergence: Floats) -> Floats:
    """Place heads by classical scaling of √divergence, which is a metric; returns (heads, 2)."""
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
    """Cluster heads by average linkage, cut at `cut` bits; returns (heads,), 0 the largest."""
    from scipy.cluster.hierarchy import fcluster, linkage  # slow to import, seldom needed
    from scipy.spatial.distance import squareform

    if len(divergence) < 2:
        return np.zeros(len(divergence), np.intp)
    apart = squareform((divergence + divergence.T) / 2, checks=False)
    _, first, labels, sizes = np.unique(
        fcluster(linkage(apart, "average"), cut, "distance"),
        return_index=True, return_inverse=True, return_counts=True,
    )  # fmt: skip
    order = np.lexsort([first, -sizes])  # largest first; of equal ones, that of the first head
    return np.asarray(order.argsort()[labels], np.intp)
