"""What are the scores of one input in one layer, from vectors at hand?

The vectors are a `StoredLayer`'s: those of a file, or those of a capture that is still running
(`HeldTensors`). Nothing here needs an atlas folder.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from attention_atlas.measure.definition import Measure
from attention_atlas.measure.kinds import COLUMNS
from attention_atlas.measure.one_input import InputScores, measure_blocks
from attention_atlas.measure.read_blocks import ALL_CORES, Machine, head_ranges, row_blocks
from attention_atlas.measure.tokens import TokenTable
from attention_atlas.store.rows import StoredLayer

Numbers = npt.NDArray[Any]


@dataclass(frozen=True)
class InputMeter:
    """What measures inputs, layer by layer."""

    tokens: TokenTable
    seed: int = 0
    machine: Machine = ALL_CORES

    def input(self, stored: StoredLayer, measures: Sequence[Measure], number: int) -> InputScores:
        """Measure all heads of a layer on one input."""
        rows, keys = stored.size(number)
        computing = self.machine.for_input(stored.layer.heads * rows * keys)
        parts = [
            measure_blocks(
                measures,
                row_blocks(stored, number, heads, self.tokens, computing, self.seed),
                np.random.default_rng([self.seed, number, stored.layer.layer]),
            )
            for heads in head_ranges(stored.layer, keys, computing.largest)
        ]
        return InputScores(
            np.concatenate([part.scores for part in parts], 1),
            np.concatenate([part.chance for part in parts], 1),
            np.concatenate([part.evidence for part in parts]),
        )

    def layer(
        self, stored: StoredLayer, measures: Sequence[Measure], inputs: Sequence[int]
    ) -> dict[str, Numbers]:
        """Measure a layer on some inputs; returns the arrays of a `Partial`, without its name."""
        heads = stored.layer.heads
        measured = [self.input(stored, measures, number) for number in inputs]
        shape = len(inputs), len(measures), heads
        return {
            "inputs": np.array(inputs, np.int64),
            "scores": np.array([one.scores for one in measured]).reshape(shape),
            "chance": np.array([one.chance for one in measured]).reshape(shape),
            "evidence": np.array([one.evidence for one in measured]).reshape(-1, heads, COLUMNS),
        }
