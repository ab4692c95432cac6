"""How do shards that were measured apart add up to the scores of an atlas?

They are added in the order of their shards, so the result is the same to the last bit in whatever
order they arrive. Only sums, bootstrap replicas and counts are kept.
"""

from collections.abc import Iterable, Iterator, Sequence
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
        for number, of_input in zip(inputs.tolist(), evidence, strict=True):
            self.tally.add(of_input, number)


def join(
    layers: Sequence[MeasuredLayer], partials: Iterable[Partial], seed: int = 0
) -> list[LayerScores]:
    """Add up partials, which may arrive in any order; returns the scores of each layer."""
    totals = [_empty(layer) for layer in layers]
    for partial in _in_turn(partials):
        for total in totals:
            total.add(partial, seed)
    return totals


def _empty(layer: MeasuredLayer) -> LayerScores:
    heads = layer.layer.heads
    columns = len(layer.measures) * heads
    return LayerScores(layer, boot.Mean(columns), boot.Sums(columns), Tally(heads))


def _in_turn(partials: Iterable[Partial]) -> Iterator[Partial]:
    """Yield partials by number of their shard; an early one waits for those before it."""
    waiting: dict[int, Partial] = {}
    turn = 0
    for partial in partials:
        waiting[partial.shard] = partial
        while turn in waiting:
            yield waiting.pop(turn)
            turn += 1
    for number in sorted(waiting):
        yield waiting[number]
