"""How is an atlas measured one shard at a time?

A `Partial` holds the scores of one shard's inputs as plain arrays, a row an input, which can be
written to a file. `join` adds partials up.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby

import numpy as np

from attention_atlas.measure.definition import Measure
from attention_atlas.measure.find_sinks import Found, find_sinks
from attention_atlas.measure.input_meter import InputMeter, Numbers
from attention_atlas.measure.measures import MEASURES
from attention_atlas.measure.read_blocks import ALL_CORES, Machine
from attention_atlas.measure.tokens import TokenTable, what_shows
from attention_atlas.models.threads import matrix_threads
from attention_atlas.names.errors import InputError
from attention_atlas.store.manifest import Layer, Tower
from attention_atlas.store.reader import StoredAtlas
from attention_atlas.store.rows import StoredLayer

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
    """What measures the shards of an atlas: all inputs, or those in `only`.

    without_sinks  the sinks of each input are found first and taken out of its weights
    """

    def __init__(
        self, atlas: StoredAtlas, measures: Mapping[str, Measure] = MEASURES, seed: int = 0,
        only: set[int] | None = None, machine: Machine = ALL_CORES, without_sinks: bool = False,
    ):  # fmt: skip
        refuse_short(atlas)
        self.without_sinks = without_sinks
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
            matrix_threads(1),
            ThreadPoolExecutor(self._threads(number)) as threads,
        ):
            meters = self._meters(number, threads) if self.without_sinks else {}
            work = partial(self._layers, number, meters)
            for inputs, measured in threads.map(work, self._together(number)):
                arrays |= measured
                count += inputs
                done(count)
        return Partial(number, arrays)

    def start(self, number: int) -> Callable[[], Partial]:
        """Begin to measure a shard whose vectors a GPU holds; returns a function that waits.

        Nothing is waited for here, so that the caller can give the GPU its next work meanwhile.
        """
        begun = []
        for layers in self._together(number):
            stored, inputs = self._held(number, layers)
            wait = self._inputs.start_layers(stored, layers[0].measures, inputs, len(inputs))
            begun.append((layers, wait))

        def read() -> Partial:
            arrays: dict[str, Numbers] = {}
            for layers, wait in begun:
                arrays |= _by_name(layers, wait())
            return Partial(number, arrays)

        return read

    def _layers(
        self, shard: int, meters: Mapping[str, InputMeter], layers: Sequence[MeasuredLayer]
    ) -> tuple[int, dict[str, Numbers]]:
        """Measure some layers of a shard; returns their inputs × layers, and their arrays."""
        stored, inputs = self._held(shard, layers)
        meter = meters.get(layers[0].tower.name, self._inputs)
        measured = meter.layers(stored, layers[0].measures, inputs)
        return len(inputs) * len(layers), _by_name(layers, measured)

    def _held(
        self, shard: int, layers: Sequence[MeasuredLayer]
    ) -> tuple[list[StoredLayer], list[int]]:
        """Return some layers of a shard, and its inputs that are measured."""
        stored = [self.atlas.held_layer(shard, layer.tower, layer.layer) for layer in layers]
        known = stored[0].inputs()
        return stored, [number for number in known if self.only is None or number in self.only]

    def _meters(self, shard: int, threads: ThreadPoolExecutor) -> dict[str, InputMeter]:
        """Find the sinks of all inputs of a shard; returns what measures without them, by tower.

        As in a page, they are those of keys that the first layer of a tower reads.
        """

        def find(layers: Sequence[MeasuredLayer]) -> tuple[Tower, Found]:
            return layers[0].tower, find_sinks(self._inputs, *self._held(shard, layers))

        aside: dict[str, dict[tuple[str, int], set[int]]] = {}
        for tower, found in threads.map(find, self._together(shard)):
            of_tower = aside.setdefault(tower.name, {})
            for (stream, number), keys in found.items():
                if stream == tower.layers[0].keys:
                    of_tower.setdefault((stream, number), set()).update(keys)
        return {
            name: replace(
                self._inputs,
                aside={place: np.array(sorted(keys), np.intp) for place, keys in of_tower.items()},
            )
            for name, of_tower in aside.items()
        }

    def _together(self, shard: int) -> Iterator[list[MeasuredLayer]]:
        """Yield the layers of a shard that are read and measured together."""

        def shared(layer: MeasuredLayer) -> tuple[object, ...]:
            stored = self.atlas.held_layer(shard, layer.tower, layer.layer)
            names = tuple(measure.name for measure in layer.measures)
            return layer.tower.name, names, layer.layer.heads, tuple(stored.inputs())

        for _, neighbours in groupby(self.layers, shared):
            layers = list(neighbours)
            step = self.machine.layers_together(self._mean_weights(shard, layers[0]), len(layers))
            for start in range(0, len(layers), step):
                yield layers[start : start + step]

    def _mean_weights(self, shard: int, layer: MeasuredLayer) -> int:
        """Count the weights of a layer and an input, on average."""
        stored = self.atlas.held_layer(shard, layer.tower, layer.layer)
        sizes = [stored.size(number) for number in stored.inputs()]
        mean = sum(rows * keys for rows, keys in sizes) // max(1, len(sizes))
        return mean * layer.layer.heads

    def _threads(self, shard: int) -> int:
        """Count the threads for a shard: one where its inputs are short."""
        return self.machine.threads(self._mean_weights(shard, self.layers[0]))


def _by_name(
    layers: Sequence[MeasuredLayer], measured: Sequence[dict[str, Numbers]]
) -> dict[str, Numbers]:
    """Return the arrays of layers under the names of a `Partial`."""
    return {
        f"{layer.stem}.{name}": array
        for layer, of_layer in zip(layers, measured, strict=True)
        for name, array in of_layer.items()
    }


def measure_shard(atlas: StoredAtlas, shard: int, seed: int = 0) -> Partial:
    """Measure one shard of an atlas."""
    return Meter(atlas, seed=seed).shard(shard)


def layers_of(atlas: StoredAtlas, measures: Iterable[Measure]) -> list[MeasuredLayer]:
    """List every layer of an atlas with the measures that apply to it."""
    measures = tuple(measures)
    streams = {layer.keys for tower in atlas.towers for layer in tower.layers}
    shows = {stream: what_shows(atlas.tokens(stream=stream)) for stream in streams}
    return [
        MeasuredLayer(tower, layer, _possible(atlas, tower, layer, measures, shows[layer.keys]))
        for tower in atlas.towers
        for layer in tower.layers
    ]


def _possible(
    atlas: StoredAtlas, tower: Tower, layer: Layer, measures: tuple[Measure, ...],
    shows: Container[str],
) -> tuple[Measure, ...]:  # fmt: skip
    square = layer.queries == layer.keys
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
