"""How is an atlas measured one shard at a time?

A `Partial` holds the scores of one shard's inputs as plain arrays, a row an input, which can be
written to a file. `join` adds partials up.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from attention_atlas.measure.definition import Measure
from attention_atlas.measure.kinds import COLUMNS
from attention_atlas.measure.measures import MEASURES
from attention_atlas.measure.one_input import measure_blocks
from attention_atlas.measure.read_blocks import LARGEST, head_ranges, row_blocks
from attention_atlas.measure.tokens import TokenTable, what_shows
from attention_atlas.names.errors import InputError
from attention_atlas.store.manifest import Layer, Tower
from attention_atlas.store.reader import StoredAtlas
from attention_atlas.store.rows import StoredLayer

Done = Callable[[int], None]
Numbers = npt.NDArray[Any]


@dataclass(frozen=True)
class Partial:
    """The scores of the inputs of one shard.

    For each tower and layer (`encoder.L3`, say), with the measures that apply to the layer:

        encoder.L3.inputs    (I,)              their numbers
        encoder.L3.scores    (I, measures, H)  NaN: no answer
        encoder.L3.chance    (I, measures, H)
        encoder.L3.evidence  (I, H, 14)        for kinds
    """

    shard: int
    arrays: dict[str, Numbers]

    def of(self, layer: "MeasuredLayer") -> tuple[Numbers, ...]:
        """Get inputs, scores, chance and evidence of one layer."""
        names = ("inputs", "scores", "chance", "evidence")
        return tuple(self.arrays[f"{layer.stem}.{name}"] for name in names)


@dataclass(frozen=True)
class MeasuredLayer:
    """One layer with the measures that apply to it."""

    tower: Tower
    layer: Layer
    measures: tuple[Measure, ...]

    @property
    def stem(self) -> str:
        return f"{self.tower.name}.L{self.layer.layer}"


class Meter:
    """What measures the shards of an atlas: all inputs, or those in `only`."""

    def __init__(
        self, atlas: StoredAtlas, measures: Mapping[str, Measure] = MEASURES, seed: int = 0,
        only: set[int] | None = None, largest: int = LARGEST,
    ):  # fmt: skip
        refuse_short(atlas)
        self.atlas, self.seed, self.only, self.largest = atlas, seed, only, largest
        self.tokens, self.layers = TokenTable(atlas), layers_of(atlas, measures.values())

    def shard(self, number: int, done: Done = lambda count: None) -> Partial:
        """Measure one shard; calls `done` with the number of inputs × layers measured so far."""
        arrays: dict[str, Numbers] = {}
        count = 0
        for layer in self.layers:
            stored = self.atlas.held_layer(number, layer.tower, layer.layer)
            inputs = [
                number for number in stored.inputs() if self.only is None or number in self.only
            ]
            measured = self._layer(stored, layer.measures, inputs)
            arrays |= {f"{layer.stem}.{name}": array for name, array in measured.items()}
            count += len(inputs)
            done(count)
        return Partial(number, arrays)

    def _layer(
        self, stored: StoredLayer, measures: tuple[Measure, ...], inputs: list[int]
    ) -> dict[str, Numbers]:
        count, heads = len(inputs), stored.layer.heads
        scores, chance = np.full((2, count, len(measures), heads), np.nan)
        evidence = np.full((count, heads, COLUMNS), np.nan)
        for place, number in enumerate(inputs):
            for group in head_ranges(stored.layer, stored.size(number)[1], self.largest):
                blocks = row_blocks(stored, number, group, self.tokens, self.largest)
                dice = np.random.default_rng([self.seed, number, stored.layer.layer])
                measured = measure_blocks(measures, blocks, dice)
                columns = slice(group[0], group[-1] + 1)
                scores[place, :, columns] = measured.scores
                chance[place, :, columns] = measured.chance
                evidence[place, columns] = measured.evidence
        numbers = np.array(inputs, np.int64)
        return {"inputs": numbers, "scores": scores, "chance": chance, "evidence": evidence}


def measure_shard(atlas: StoredAtlas, shard: int, seed: int = 0) -> Partial:
    """Measure one shard of an atlas."""
    return Meter(atlas, seed=seed).shard(shard)


def layers_of(atlas: StoredAtlas, measures: Iterable[Measure]) -> list[MeasuredLayer]:
    """List every layer of an atlas with the measures that apply to it."""
    measures = tuple(measures)
    return [
        MeasuredLayer(tower, layer, _possible(atlas, tower, layer, measures))
        for tower in atlas.towers
        for layer in tower.layers
    ]


def _possible(
    atlas: StoredAtlas, tower: Tower, layer: Layer, measures: tuple[Measure, ...]
) -> tuple[Measure, ...]:
    square, shows = layer.queries == layer.keys, what_shows(atlas, layer.keys)
    parts: dict[str, tuple[str, ...]] = {
        "weights": (), "vectors": ("query", "key"), "values": ("value",),
    }  # fmt: skip

    def applies(measure: Measure) -> bool:
        if measure.needs in ("patches", "mixed"):
            return square and measure.needs in shows
        kept = all(atlas.has(part, layer.layer, tower.name) for part in parts[measure.needs])
        return kept and (square or not measure.square)

    return tuple(measure for measure in measures if applies(measure))


def refuse_short(atlas: StoredAtlas) -> None:
    """Refuse an atlas of one-token inputs, whose rows have nothing to choose."""
    longest = atlas.tokens().groupby(["input", "stream"]).size().max()
    if longest < 2:
        raise InputError(
            f"every input of {atlas.path.name} has a single token, so no head has anything to "
            "choose; capture inputs of two tokens or more"
        )
