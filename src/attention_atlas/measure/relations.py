"""Which relation of a tree does a head follow, and how much better than a fixed offset?

Each relation is tested both ways: up, from a word to the word it depends on, and down, the reverse.
The share is over all words of all inputs that see a linked word; the baseline is the best fixed
offset on the same words (Clark et al. 2019). The interval is a bootstrap of the share over inputs,
widened as for all scores; the baseline is taken as exact.
"""

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from attention_atlas.measure import boot
from attention_atlas.measure.arrays import Bools, Floats
from attention_atlas.measure.trees import OFFSETS, Choices, Matched, right
from attention_atlas.store.reader import StoredAtlas

COLUMNS = (
    "head", "relation", "way", "right", "baseline", "offset", "above", "low", "high", "words",
    "inputs",
)  # fmt: skip
Key = tuple[str, str, int]  # relation, way, number of the layer among all layers


@dataclass
class _Counts:
    """The counts of one relation and way in one layer, by input."""

    words: dict[int, int] = field(default_factory=dict)
    right: dict[int, Floats] = field(default_factory=dict)  # (H,)
    fixed: Floats = field(default_factory=lambda: np.zeros(len(OFFSETS)))


class Relations:
    """Counts of how often each head follows each relation."""

    def __init__(self, atlas: StoredAtlas, matched: dict[int, Matched]):
        self.matched = matched
        self.names = [str(name) for name in atlas.heads()["head"]]
        layers = [layer.heads for tower in atlas.towers for layer in tower.layers]
        self.edges = np.cumsum([0, *layers])  # first head of each layer
        self._counts: dict[Key, _Counts] = defaultdict(_Counts)

    def add(self, choices: Choices) -> None:
        """Count the right choices of some heads for some words of an input."""
        for relation, up in self.matched[choices.input].depends.items():
            for way, links in (("up", up), ("down", up.T)):
                counts = self._counts[relation, way, choices.layer]
                self._add(choices, counts, links[choices.words])

    def _add(self, choices: Choices, counts: _Counts, links: Bools) -> None:
        fine, words = right(choices.chosen, links, choices.seen)
        if not words:
            return
        first = int(self.edges[choices.layer])
        size = int(self.edges[choices.layer + 1]) - first
        by_head = counts.right.setdefault(choices.input, np.zeros(size))
        by_head[choices.heads.start - first : choices.heads.stop - first] += fine
        if choices.heads.start == first:  # words count once for all heads
            counts.words[choices.input] = counts.words.get(choices.input, 0) + words
            counts.fixed += right(choices.fixed, links, choices.seen)[0]

    def table(self, seed: int) -> pd.DataFrame:
        """Make the table: a row a head, relation and way."""
        rows = [
            row for key in sorted(self._counts) for row in self._rows(key, self._counts[key], seed)
        ]
        return pd.DataFrame(rows, columns=list(COLUMNS))

    def _rows(self, key: Key, counts: _Counts, seed: int) -> list[tuple[object, ...]]:
        if not counts.words:
            return []
        relation, way, layer = key
        inputs = sorted(counts.words)
        words = np.array([counts.words[number] for number in inputs], float)
        fine = np.stack([counts.right[number] for number in inputs])  # (inputs, H)
        share, low, high = ratio(fine, words, boot.draws(seed, tuple(inputs)))
        best = int(counts.fixed.argmax())
        baseline = float(counts.fixed[best] / words.sum())
        names = self.names[self.edges[layer] : self.edges[layer + 1]]
        return [
            (name, relation, way, float(share[head]), baseline, OFFSETS[best],
             float(share[head]) - baseline, float(low[head]), float(high[head]), int(words.sum()),
             len(inputs))
            for head, name in enumerate(names)
        ]  # fmt: skip


def ratio(count: Floats, total: Floats, draws: Floats) -> tuple[Floats, Floats, Floats]:
    """Compute Σ count (inputs, H) / Σ total (inputs,) and its interval; returns (H,) each."""
    share = count.sum(0) / total.sum()
    if len(total) < boot.FEWEST:
        return share, np.full(len(share), np.nan), np.full(len(share), np.nan)
    drawn = draws.T @ total  # (replicas,)
    replicas = (draws.T @ count)[drawn > 0] / drawn[drawn > 0, None]
    tail = 100 * (1 - boot.LEVEL) / 2
    low, high = np.percentile(replicas, [tail, 100 - tail], axis=0)
    wide = boot.wider(len(total))
    return share, *(np.clip(share + (end - share) * wide, 0, 1) for end in (low, high))


def best_heads(table: pd.DataFrame) -> pd.DataFrame:
    """Pick the head furthest above the best offset for each relation and way, furthest first."""
    best = table.loc[table.groupby(["relation", "way"])["above"].idxmax()]
    return best.sort_values(["above", "words"], ascending=False, ignore_index=True)
