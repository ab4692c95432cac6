"""How is an atlas measured one shard at a time?

A `Partial` holds the scores of one shard's inputs as plain arrays, a row an input, which can be
written to a file. `join` adds partials up.
"""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from threadpoolctl import threadpool_limits

from attention_atlas.measure.definition import Measure
from attention_atlas.measure.input_meter import InputMeter, Numbers
from attention_atlas.measure.measures import MEASURES
from attention_atlas.measure.read_blocks import ALL_CORES, Machine
from attention_atlas.measure.tokens import TokenTable, what_shows
from attention_atlas.names.errors import InputError
from attention_atlas.store.manifest import Layer, Tower
from attention_atlas.store.reader import StoredAtlas

Done = Callable[[int], None]


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
        only: set[int] | None = None, machine: Machine = ALL_CORES,
    ):  # fmt: skip
        refuse_short(atlas)
        self.atlas, self.seed, self.only = atlas, seed, only
        self.machine = machine
        self.layers = layers_of(atlas, measures.values())
        self._inputs = InputMeter(TokenTable(atlas.tokens()), seed, self.machine)

    def shard(self, number: int, done: Done = lambda count: None) -> Partial:
        """Measure one shard; calls `done` with the number of inputs × layers measured so far."""
        arrays: dict[str, Numbers] = {}
        count = 0
        # The threads are ours: those of the matrix library would wait for each other, and spin.
        with (
            threadpool_limits(1, "blas"),
            ThreadPoolExecutor(self._threads(number)) as threads,
        ):
            for inputs, measured in threads.map(partial(self._layer, number), self.layers):
                arrays |= measured
                count += inputs
                done(count)
        return Partial(number, arrays)

    def _layer(self, shard: int, layer: MeasuredLayer) -> tuple[int, dict[str, Numbers]]:
        """Measure one layer of a shard; returns how many inputs it has, and its arrays."""
        stored = self.atlas.held_layer(shard, layer.tower, layer.layer)
        inputs = [number for number in stored.inputs() if self.only is None or number in self.only]
        measured = self._inputs.layer(stored, layer.measures, inputs)
        return len(inputs), {f"{layer.stem}.{name}": array for name, array in measured.items()}

    def _threads(self, shard: int) -> int:
        """Count the threads for a shard: one where its inputs are short."""
        layer = self.layers[0]
        stored = self.atlas.held_layer(shard, layer.tower, layer.layer)
        sizes = [stored.size(number) for number in stored.inputs()]
        mean = sum(rows * keys for rows, keys in sizes) // max(1, len(sizes))
        return self.machine.threads(mean * layer.layer.heads)


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
    square, shows = layer.queries == layer.keys, what_shows(atlas.tokens(stream=layer.keys))
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
