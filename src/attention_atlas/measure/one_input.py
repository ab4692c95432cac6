"""What are the scores of one input that is read in blocks of rows?"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from attention_atlas.measure.accumulate import Accumulator, State
from attention_atlas.measure.arrays import Floats, all_as_numpy
from attention_atlas.measure.chance import ChanceBlock
from attention_atlas.measure.definition import Measure
from attention_atlas.measure.kinds import Evidence
from attention_atlas.measure.row_block import RowBlock


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
    scores, kinds = _Running([measure.of for measure in measures]), _Running([Evidence()])
    by_chance = [measure for measure in measures if measure.chance != "zero"]
    chances = _Running([measure.of for measure in by_chance])
    for block in blocks:
        scores.add([measure.of.state(block) for measure in measures])
        kinds.add([Evidence().state(block)])
        chance = ChanceBlock(block, dice)
        chances.add([_by_chance(measure, chance) for measure in by_chance])
    (evidence,) = kinds.values()
    heads = len(evidence)
    expected = {
        measure.name: value[:1] if measure.chance == "even" else value
        for measure, value in zip(by_chance, chances.values(), strict=True)
    }
    shape = len(measures), heads
    values = [np.broadcast_to(expected.get(one.name, np.zeros(1)), heads) for one in measures]
    return InputScores(
        np.array(scores.values()).reshape(shape), np.array(values).reshape(shape), evidence
    )


def _by_chance(measure: Measure, chance: ChanceBlock) -> State:
    if measure.chance == "even":
        return measure.of.state(chance.even)
    return measure.of.shuffled(chance)


class _Running:
    """Accumulators with their states so far."""

    def __init__(self, accumulators: Sequence[Accumulator]):
        self._accumulators = accumulators
        self._states: list[State] = []

    def add(self, states: list[State]) -> None:
        if self._states:
            before = zip(self._accumulators, self._states, states, strict=True)
            states = [accumulator.join(state, added) for accumulator, state, added in before]
        self._states = states

    def values(self) -> list[Floats]:
        both = zip(self._accumulators, all_as_numpy(self._states), strict=True)
        return [accumulator.value(state) for accumulator, state in both]
