"""How is an atlas measured a shard at a time, each apart from the others?

A `Partial` holds what the inputs of one shard gave: plain arrays, a row an input, that can be
written down and read again. `join` adds partials up.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from attention_atlas.measure.kinds import COLUMNS
from attention_atlas.measure.measure import Measure
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

    For each tower and layer (`encoder.L3`, say), with the measures that the layer can have:

        encoder.L3.inputs    (I,)              their numbers
        encoder.L3.scores    (I, measures, H)  NaN: no answer
        encoder.L3.chance    (I, measures, H)
        encoder.L3.evidence  (I, H, 14)        for kinds
    """

    shard: int
    arrays: dict[str, Numbers]

    def of(self, layer: "MeasuredLayer") -> tuple[Numbers, ...]:
        """Inputs, scores, chance and evidence of one layer."""
        names = ("inputs", "scores", "chance", "evidence")
        return tuple(self.arrays[f"{layer.stem}.{name}"] for name in names)


@dataclass(frozen=True)
class MeasuredLayer:
    """One layer with the measures that it can have."""

    tower: Tower
    layer: Layer
    measures: tuple[Measure, ...]

    @property
    def stem(self) -> str:
        return f"{self.tower.name}.L{self.layer.layer}"


class Meter:
    """Measures shards of an atlas: all inputs, or those in `only`."""

    def __init__(
        self, atlas: StoredAtlas, measures: Mapping[str, Measure] = MEASURES, seed: int = 0,
        only: set[int] | None = None, largest: int = LARGEST,
    ):  # fmt: skip
        refuse_short(atlas)
        self.atlas, self.seed, self.only, self.largest = atlas, seed, only, largest
        self.tokens, self.layers = TokenTable(atlas), layers_of(atlas, measures.values())

    def shard(self, number: int, done: Done = lambda count: None) -> Partial:
        """Measure one shard; `done` hears how many inputs × layers are measured."""
        arrays: dict[str, Numbers] = {}
        count = 0
        for layer in self.layers:
            stored = self.atlas.held_layer(number, layer.tower, layer.layer)
            inputs = [one for one in stored.inputs() if self.only is None or one in self.only]
            found = self._layer(stored, layer.measures, inputs)
            arrays |= {f"{layer.stem}.{name}": array for name, array in found.items()}
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
            for some in head_ranges(stored.layer, stored.size(number)[1], self.largest):
                blocks = row_blocks(stored, number, some, self.tokens, self.largest)
                dice = np.random.default_rng([self.seed, number, stored.layer.layer])
                found, own = measure_blocks(measures, blocks, dice), slice(some[0], some[-1] + 1)
                scores[place, :, own], chance[place, :, own] = found.scores, found.chance
                evidence[place, own] = found.evidence
        numbers = np.array(inputs, np.int64)
        return {"inputs": numbers, "scores": scores, "chance": chance, "evidence": evidence}


def measure_shard(atlas: StoredAtlas, shard: int, seed: int = 0) -> Partial:
    """Measure one shard by itself."""
    return Meter(atlas, seed=seed).shard(shard)


def layers_of(atlas: StoredAtlas, measures: Iterable[Measure]) -> list[MeasuredLayer]:
    """Every layer of an atlas with those of the measures that it can have."""
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

    def can(measure: Measure) -> bool:
        if measure.needs in ("patches", "mixed"):
            return square and measure.needs in shows
        kept = all(atlas.has(part, layer.layer, tower.name) for part in parts[measure.needs])
        return kept and (square or not measure.square)

    return tuple(measure for measure in measures if can(measure))


def refuse_short(atlas: StoredAtlas) -> None:
    """Refuse an atlas of one-token inputs, which have nothing to choose between."""
    longest = atlas.tokens().groupby(["input", "stream"]).size().max()
    if longest < 2:
        raise InputError(
            f"every input of {atlas.path.name} has a single token, so no head has anything to "
            "choose; capture inputs of two tokens or more"
        )
