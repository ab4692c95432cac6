"""How is a model captured so that a corpus of any size can be studied?

With `vectors="all"` the atlas keeps everything and is measured when asked for. Otherwise each shard
is measured while its vectors are in memory, and only a sample of them, or none, is written.
"""

from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from threading import Semaphore, Thread
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from attention_atlas.store.reader import StoredAtlas

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from attention_atlas.measure.shards import MeasuredLayer, Partial
    from attention_atlas.store.parts import Contents, Journal


def capture(model: Any, inputs: Any, *arguments: Any, **options: Any) -> StoredAtlas:
    """Run a model over inputs and store its attention; returns the atlas.

    The arguments and options are those of `record.write.capture.capture`.
    """
    from attention_atlas.names.errors import InputError
    from attention_atlas.record.write.capture import capture as run

    if "measuring" in options:
        raise InputError('capture takes no measuring; vectors="none" measures while it captures')
    return run(model, inputs, *arguments, measuring=WhileCapturing(), **options)


@dataclass(frozen=True)
class WhileCapturing:
    """What measures each shard of a capture before its vectors are dropped."""

    work: str = f"{__name__}:run_measured"

    def get_ready(self, device: str) -> None:
        """Compile the kernel of measures while the model is tried, where it runs on a GPU."""
        from attention_atlas.measure.read_blocks import Computing

        if Computing(device).fused:
            Thread(target=_compile, args=(device,), daemon=True).start()

    def finish(self, atlas: StoredAtlas, scores: "Journal") -> None:
        """Write the scores of an atlas from those of its shards."""
        from attention_atlas.measure.join import join
        from attention_atlas.measure.orders import order_rows
        from attention_atlas.measure.run import all_score_rows, drawn_rows, kind_rows, told
        from attention_atlas.measure.weights import alike_rows
        from attention_atlas.record.write.options import score_rows_of
        from attention_atlas.store.scores import Scores, write_scores

        seed = int(atlas.manifest.options["seed"])
        layers = _layers(atlas, scores)
        if not layers:  # every input has a single token
            return
        partials = (_partial(scores, number, layers) for number in scores.parts)
        joined = join(layers, partials, seed)
        rows = all_score_rows(atlas, joined)
        kinds = [row for layer in joined for row in kind_rows(atlas, layer)]
        asked = atlas.manifest.options.get("score_rows")
        drawn = drawn_rows(atlas.tokens(), score_rows_of(asked, len(atlas)))
        words = {
            measure.name: told(measure, drawn["rows"])
            for layer in layers
            for measure in layer.measures
        }
        for more_rows, more_words in (order_rows(atlas, seed), alike_rows(atlas)):
            rows, words = rows + more_rows, words | more_words
        options = {"seed": seed, "inputs": len(atlas), **drawn}
        made = Scores(pd.DataFrame(rows), pd.DataFrame(kinds), words, options)
        write_scores(atlas.path, atlas.manifest, made)


def _compile(device: str) -> None:
    from attention_atlas.measure.fused_sums import compile_ahead

    with suppress(Exception):  # if it cannot be compiled, measuring says so
        compile_ahead(device)


class MeasuredShard(Mapping[str, "Contents"]):
    """What a shard keeps, and its scores, which a GPU may still compute until they are asked for.

    So they are waited for in the thread that writes, while the model runs the next shard.
    """

    def __init__(self, contents: "Contents", scores: "Callable[[], Contents]"):
        self._parts = {"contents": lambda: contents, "scores": scores}

    def __getitem__(self, name: str) -> "Contents":
        return self._parts[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)


def run_measured(asked: Mapping[str, Any]) -> MeasuredShard:
    """Run one shard of a plan and measure it; returns what it keeps, and its scores."""
    from attention_atlas.record.write.shard_job import start_shard

    run = start_shard(asked)
    whole = run.contents(everything=True)
    device = run.loaded.model.device.type
    work = partial(start_measuring, whole, run.plan, device, run.plan.score_rows)
    if device != "cuda":
        return MeasuredShard(run.contents(), work())
    begun = _in_turn(work)
    return MeasuredShard(run.contents(), lambda: begun.result()())


# A thousand small operations an input: asking a GPU for them takes as long as the model's pass, so
# they are asked for while the model is given its next inputs. One shard waits at the most.
_asking, _place = ThreadPoolExecutor(1, "measuring"), Semaphore()


def _in_turn(work: "Callable[[], Callable[[], Contents]]") -> "Future[Callable[[], Contents]]":
    """Begin to measure in a thread, once what was begun before is asked for; returns its future."""
    _place.acquire()
    begun = _asking.submit(work)
    begun.add_done_callback(lambda _: _place.release())
    return begun


def measure_contents(whole: "Contents", plan: Any) -> "Contents":
    """Measure all inputs of a shard in memory; returns the scores, and the names of measures."""
    return start_measuring(whole, plan)()


def start_measuring(
    whole: "Contents", plan: Any, device: str = "cpu", rows: int | None = None
) -> "Callable[[], Contents]":
    """Begin to measure a shard; returns a function that waits for what `measure_contents` returns.

    On a CPU it is measured at once. On a GPU everything is begun: the vectors are not needed after.

    rows  of each input, at most; None: as many as of an atlas
    """
    from attention_atlas.measure.read_blocks import find_machine
    from attention_atlas.measure.shards import Meter
    from attention_atlas.names.errors import InputError
    from attention_atlas.store.held_shard import HeldShard
    from attention_atlas.store.parts import Contents

    # What is measured on the GPU that the model is on never leaves it.
    on_gpu = device == "cuda"
    held = HeldShard(plan.towers, whole.arrays, whole.tables["tokens"], on_gpu)
    usual = find_machine(device)
    machine = replace(usual, rows=rows or usual.rows, held=on_gpu)
    try:
        meter = Meter(held, seed=plan.capturing.seed, machine=machine)
    except InputError:  # inputs of a single token: no head has anything to choose
        return Contents
    measures = {layer.stem: [measure.name for measure in layer.measures] for layer in meter.layers}
    if on_gpu:
        read = meter.start(0)
        return lambda: Contents(read().arrays, facts={"measures": measures})
    measured = Contents(meter.shard(0).arrays, facts={"measures": measures})
    return lambda: measured


def _layers(atlas: StoredAtlas, scores: "Journal") -> "list[MeasuredLayer]":
    """List the layers of an atlas with the measures that any shard has."""
    from attention_atlas.measure.measures import MEASURES
    from attention_atlas.measure.shards import MeasuredLayer

    used: dict[str, set[str]] = {}
    for part in scores.parts.values():
        for stem, names in part.facts.get("measures", {}).items():
            used.setdefault(stem, set()).update(names)
    layers = []
    for tower in atlas.towers:
        for layer in tower.layers:
            names = used.get(f"{tower.name}.L{layer.layer}", set())
            measures = tuple(MEASURES[name] for name in MEASURES if name in names)
            layers.append(MeasuredLayer(tower, layer, measures))
    return layers if used else []


def _partial(scores: "Journal", number: int, layers: "Sequence[MeasuredLayer]") -> "Partial":
    """Read the scores of a shard; measures that it lacks have no answer there."""
    from attention_atlas.measure.shards import Partial

    arrays = scores.arrays(number)
    measures = scores.parts[number].facts.get("measures", {})
    for layer in layers:
        own = measures.get(layer.stem, [])
        wanted = [measure.name for measure in layer.measures]
        if own == wanted:
            continue
        for name in ("scores", "chance"):
            table = arrays.get(f"{layer.stem}.{name}", np.zeros((0, 0, layer.layer.heads)))
            wide = np.full((len(table), len(wanted), layer.layer.heads), np.nan)
            for place, measure in enumerate(own):
                wide[:, wanted.index(measure)] = table[:, place]
            arrays[f"{layer.stem}.{name}"] = wide
        arrays.setdefault(f"{layer.stem}.inputs", np.zeros(0, np.int64))
        arrays.setdefault(f"{layer.stem}.evidence", np.zeros((0, layer.layer.heads, 0)))
    return Partial(number, arrays)
