"""What are the scores of one input that is read in blocks of rows?"""

from collections.abc import Callable, Iterable, Sequence
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
    return start_measuring(measures, blocks, dice)()


def start_measuring(
    measures: Sequence[Measure], blocks: Iterable[RowBlock], dice: np.random.Generator
) -> Callable[[], InputScores]:
    """Begin to measure one input; returns a function that waits for its scores.

    A GPU computes while the caller begins with the next input.
    """
    scores, kinds = _Running([measure.of for measure in measures]), _Running([Evidence()])
    by_chance = [measure for measure in measures if measure.chance != "zero"]
    chances = _Running([measure.of for measure in by_chance])
    for block in blocks:
        scores.add([measure.of.state(block) for measure in measures])
        kinds.add([Evidence().state(block)])
        chance = ChanceBlock(block, dice)
        chances.add([_by_chance(measure, chance) for measure in by_chance])

    def read() -> InputScores:
        own, (evidence,), by_measure = _read_together(scores, kinds, chances)
        heads = len(evidence)
        expected = {
            measure.name: value[:1] if measure.chance == "even" else value
            for measure, value in zip(by_chance, by_measure, strict=True)
        }
        shape = len(measures), heads
        values = [np.broadcast_to(expected.get(one.name, np.zeros(1)), heads) for one in measures]
        return InputScores(np.array(own).reshape(shape), np.array(values).reshape(shape), evidence)

    return read


def _by_chance(measure: Measure, chance: ChanceBlock) -> State:
    if measure.chance == "even":
        return measure.of.state(chance.even)
    return measure.of.shuffled(chance)


class _Running:
    """Accumulators with their states so far."""

    def __init__(self, accumulators: Sequence[Accumulator]):
        self._accumulators = accumulators
        self.states: list[State] = []

    def add(self, states: list[State]) -> None:
        if self.states:
            before = zip(self._accumulators, self.states, states, strict=True)
            states = [accumulator.join(state, added) for accumulator, state, added in before]
        self.states = states

    def values(self, states: Sequence[tuple[Floats, ...]]) -> list[Floats]:
        """Compute the values of the states, which are copied to NumPy."""
        both = zip(self._accumulators, states, strict=True)
        return [accumulator.value(state) for accumulator, state in both]


def _read_together(*several: _Running) -> list[list[Floats]]:
    """Compute the values of several accumulators; those on a GPU come in one copy."""
    states = all_as_numpy([state for running in several for state in running.states])
    ends = np.cumsum([len(running.states) for running in several])
    return [
        running.values(states[end - len(running.states) : end])
        for running, end in zip(several, ends, strict=True)
    ]
