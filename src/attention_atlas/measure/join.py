"""How do shards that were measured apart add up to the scores of an atlas?

They are added in the order of their shards, so the result is the same to the last bit in whatever
order they arrive. Only sums, bootstrap replicas and counts are kept.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from attention_atlas.measure import boot
from attention_atlas.measure.shards import MeasuredLayer, Partial
from attention_atlas.measure.tally import Tally


@dataclass(frozen=True)
class LayerScores:
    """Scores and kinds of the heads of one layer."""

    layer: MeasuredLayer
    mean: boot.Mean  # columns: measures × heads
    chance: boot.Sums  # the same
    tally: Tally

    def add(self, partial: Partial, seed: int) -> None:
        """Add the scores of one shard."""
        inputs, scores, chance, evidence = partial.of(self.layer)
        if not len(inputs):
            return
        draws = boot.draws(seed, tuple(inputs.tolist()))
        self.mean.add(scores.reshape(len(inputs), -1), draws)
        self.chance.add(chance.reshape(len(inputs), -1))
        self.tally.add(evidence, inputs)


class Totals:
    """The scores of each layer. Shards may arrive in any order; each is added in its turn."""

    def __init__(self, layers: Sequence[MeasuredLayer], seed: int = 0):
        self._totals, self._seed = [_empty(layer) for layer in layers], seed
        self._waiting: dict[int, Callable[[], Partial]] = {}
        self.turn = 0  # the shard that is added next

    def add(self, shard: int, read: Callable[[], Partial]) -> None:
        """Add a shard, and those that waited for it; `read` is called in its turn."""
        self._waiting[shard] = read
        while self.turn in self._waiting:
            self._take(self.turn)
            self.turn += 1

    def finish(self) -> list[LayerScores]:
        """Add the shards that still wait for one that is missing; returns all layers."""
        for shard in sorted(self._waiting):
            self._take(shard)
        return self._totals

    def _take(self, shard: int) -> None:
        partial = self._waiting.pop(shard)()
        for total in self._totals:
            total.add(partial, self._seed)


def join(
    layers: Sequence[MeasuredLayer], partials: Iterable[Partial], seed: int = 0
) -> list[LayerScores]:
    """Add up partials, which may arrive in any order; returns the scores of each layer."""
    totals = Totals(layers, seed)
    for partial in partials:
        totals.add(partial.shard, lambda partial=partial: partial)  # type: ignore[misc]
    return totals.finish()


def _empty(layer: MeasuredLayer) -> LayerScores:
    heads = layer.layer.heads
    columns = len(layer.measures) * heads
    return LayerScores(layer, boot.Mean(columns), boot.Sums(columns), Tally(heads))
