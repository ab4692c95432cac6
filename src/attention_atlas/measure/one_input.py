"""What are the scores of one input that is read in blocks of rows?"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from attention_atlas.measure.accumulate import Accumulator, State
from attention_atlas.measure.definition import Measure
from attention_atlas.measure.kinds import Evidence
from attention_atlas.measure.row_block import Floats, RowBlock


@dataclass(frozen=True)
class InputScores:
    """The scores of some heads on one input."""

    scores: Floats  # (measures, H); NaN: no answer
    chance: Floats  # (measures, H): what each measure would give by chance
    evidence: Floats  # (H, 14): for their kinds


def measure_blocks(
    measures: Sequence[Measure], blocks: Iterable[RowBlock], dice: np.random.Generator
) -> InputScores:
    """Measure one input from its blocks, read once and in order; returns the heads' scores."""
    by_chance = {
        name: [measure for measure in measures if measure.chance == name] for name in _CHANCES
    }
    scores, kinds = _Running([measure.of for measure in measures]), _Running([Evidence()])
    shuffled, even = (_Running([measure.of for measure in by_chance[name]]) for name in _CHANCES)
    for block in blocks:
        scores.add(block)
        kinds.add(block)
        shuffled.add(block.shuffled(dice))
        even.add(block.even())
    (evidence,) = kinds.values()
    chance = {
        measure.name: value
        for name, running in zip(_CHANCES, (shuffled, even), strict=True)
        for measure, value in zip(by_chance[name], running.values(), strict=True)
    }
    shape, none = (len(measures), len(evidence)), np.zeros(1)
    by_measure = [
        np.broadcast_to(chance.get(measure.name, none), shape[1:]) for measure in measures
    ]
    return InputScores(
        np.array(scores.values()).reshape(shape), np.array(by_measure).reshape(shape), evidence
    )


_CHANCES = ("shuffled", "even")  # those that must be measured


class _Running:
    """Accumulators with their states so far."""

    def __init__(self, accumulators: Sequence[Accumulator]):
        self._accumulators = accumulators
        self._states: list[State] = []

    def add(self, block: RowBlock) -> None:
        fresh = [accumulator.state(block) for accumulator in self._accumulators]
        if self._states:
            before = zip(self._accumulators, self._states, fresh, strict=True)
            fresh = [accumulator.join(state, added) for accumulator, state, added in before]
        self._states = fresh

    def values(self) -> list[Floats]:
        both = zip(self._accumulators, self._states, strict=True)
        return [accumulator.value(state) for accumulator, state in both]
