"""What are the scores of one input, from vectors at hand?

The vectors are a `StoredLayer`'s: those of a file, or those of a capture that is still running
(`HeldTensors`). Nothing here needs an atlas folder. Layers that mask an input alike are measured
together, all their heads in one block: a call on a few heads costs as much as one on many.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from attention_atlas.measure.definition import Measure
from attention_atlas.measure.dice import InputDice
from attention_atlas.measure.kinds import COLUMNS
from attention_atlas.measure.one_input import InputScores, start_measuring
from attention_atlas.measure.read_blocks import (
    ALL_CORES,
    LARGEST,
    Computing,
    HeadPart,
    Machine,
    Stack,
    head_ranges,
    stacked_blocks,
)
from attention_atlas.measure.set_aside import set_aside
from attention_atlas.measure.tokens import TokenTable
from attention_atlas.names.out_of_memory import is_out_of_memory
from attention_atlas.store.form import Ints
from attention_atlas.store.rows import StoredLayer

AHEAD = 1  # inputs that a GPU may still compute when the next one is begun
Numbers = npt.NDArray[Any]


@dataclass(frozen=True)
class InputMeter:
    """What measures inputs, some layers at a time."""

    tokens: TokenTable
    seed: int = 0
    machine: Machine = ALL_CORES
    aside: Mapping[tuple[str, int], Ints] | None = None  # stream, input → keys to take out

    def input(self, stored: StoredLayer, measures: Sequence[Measure], number: int) -> InputScores:
        """Measure all heads of a layer on one input."""
        return self.together([stored], measures, number)[0]

    def together(
        self, layers: Sequence[StoredLayer], measures: Sequence[Measure], number: int
    ) -> list[InputScores]:
        """Measure all heads of some layers that are `alike` on one input."""
        return self._start(layers, measures, number)()

    def _start(
        self, layers: Sequence[StoredLayer], measures: Sequence[Measure], number: int
    ) -> Callable[[], list[InputScores]]:
        """Begin to measure one input; returns a function that waits for the scores of layers."""
        rows, keys = layers[0].size(number)
        heads = [stored.layer.heads for stored in layers]
        computing = self.machine.for_input(sum(heads) * rows * keys)
        stacks = cut_stacks(layers, keys, computing.largest)
        begun = [self._stack(stack, measures, number, computing) for stack in stacks]

        def read() -> list[InputScores]:
            parts = [wait() for wait in begun]
            scores = np.concatenate([part.scores for part in parts], 1)
            chance = np.concatenate([part.chance for part in parts], 1)
            evidence = np.concatenate([part.evidence for part in parts])
            ends = np.cumsum(heads)[:-1]
            cut = np.split(scores, ends, 1), np.split(chance, ends, 1), np.split(evidence, ends)
            return [InputScores(*of_layer) for of_layer in zip(*cut, strict=True)]

        return read

    def layers(
        self, layers: Sequence[StoredLayer], measures: Sequence[Measure], inputs: Sequence[int]
    ) -> list[dict[str, Numbers]]:
        """Measure layers on some inputs; returns the arrays of a `Partial`, without their names."""
        return self.start_layers(layers, measures, inputs, AHEAD)()

    def start_layers(
        self, layers: Sequence[StoredLayer], measures: Sequence[Measure], inputs: Sequence[int],
        ahead: int,
    ) -> Callable[[], list[dict[str, Numbers]]]:  # fmt: skip
        """Begin to measure layers; returns a function that waits for what `layers` returns.

        ahead  inputs that may be begun and not read yet
        """
        measured: list[list[InputScores]] = [[] for _ in layers]
        begun: deque[tuple[list[int], Callable[[], list[InputScores]]]] = deque()

        def read(left: int) -> None:
            while len(begun) > left:
                group, wait = begun.popleft()
                for place, of_layer in zip(group, wait(), strict=True):
                    measured[place].append(of_layer)

        for number in inputs:
            for group in group_alike(layers, number):
                alike = [layers[place] for place in group]
                begun.append((group, self._start(alike, measures, number)))
                read(ahead)

        def arrays() -> list[dict[str, Numbers]]:
            read(0)
            return [
                _arrays(scores, inputs, len(measures), stored.layer.heads)
                for scores, stored in zip(measured, layers, strict=True)
            ]

        return arrays

    def _stack(
        self, stack: Stack, measures: Sequence[Measure], number: int, computing: Computing
    ) -> Callable[[], InputScores]:
        """Begin to measure the heads of a stack; where memory does not suffice, in smaller blocks.

        Returns a function that waits for their scores.
        """
        # The same shuffles for all layers, so that chance does not depend on how they are cut.
        dice = InputDice(self.seed, number)
        blocks = stacked_blocks(stack, number, self.tokens, computing, self.seed)
        if self.aside is not None:
            layer = stack[0].stored.layer
            keys = self.aside.get((layer.keys, number), np.zeros(0, np.intp))
            blocks = set_aside(blocks, keys, layer.sink)
        try:
            return start_measuring(measures, blocks, dice)
        except (RuntimeError, MemoryError) as problem:
            if not is_out_of_memory(problem) or computing.largest <= LARGEST:
                raise
        smaller = replace(computing, largest=max(LARGEST, computing.largest // 4))
        return self._stack(stack, measures, number, smaller)


def cut_stacks(layers: Sequence[StoredLayer], keys: int, largest: int) -> Iterator[Stack]:
    """Yield heads of layers, in order, of which at least one row fits into memory."""
    most, stack, count = largest // max(1, keys), list[HeadPart](), 0
    for stored in layers:
        for heads in head_ranges(stored.layer, keys, largest):
            if stack and count + len(heads) > most:
                yield stack
                stack, count = [], 0
            stack.append(HeadPart(stored, heads))
            count += len(heads)
    yield stack


def group_alike(layers: Sequence[StoredLayer], number: int) -> list[list[int]]:
    """Group the places of layers that are alike on an input."""
    groups: dict[object, list[int]] = {}
    for place, stored in enumerate(layers):
        shared = stored.alike(number)
        groups.setdefault(("alone", place) if shared is None else shared, []).append(place)
    return list(groups.values())


def _arrays(
    scores: Sequence[InputScores], inputs: Sequence[int], measures: int, heads: int
) -> dict[str, Numbers]:
    shape = len(inputs), measures, heads
    return {
        "inputs": np.array(inputs, np.int64),
        "scores": np.array([one.scores for one in scores]).reshape(shape),
        "chance": np.array([one.chance for one in scores]).reshape(shape),
        "evidence": np.array([one.evidence for one in scores]).reshape(-1, heads, COLUMNS),
    }
