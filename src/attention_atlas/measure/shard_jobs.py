"""How do the shards of an atlas become jobs that measure them, here or elsewhere?"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from threading import Lock
from typing import Any

import numpy as np

from attention_atlas.engine.elsewhere import reach
from attention_atlas.engine.held import held, holding
from attention_atlas.engine.job import Engine, Job
from attention_atlas.measure.join import LayerScores, Totals
from attention_atlas.measure.read_blocks import Machine
from attention_atlas.measure.shards import Meter, Partial
from attention_atlas.names.errors import StoreError
from attention_atlas.names.progress import Progress
from attention_atlas.store.parts import Contents, Journal
from attention_atlas.store.reader import StoredAtlas

RUN_SHARD = f"{__name__}:run_measuring"


@dataclass
class MeteredShards:
    """What measures shards, and how far it has come."""

    meter: Meter
    draw: Progress = lambda done: None
    finished: set[int] = field(default_factory=set)  # shards

    def shard(self, number: int) -> Partial:
        """Measure one shard, and draw the progress inside of it."""
        before = self.count()
        partial = self.meter.shard(number, lambda count: self.draw(before + count))
        self.finish(number)
        return partial

    def finish(self, number: int) -> None:
        """Note that a shard is measured, and draw the progress."""
        self.finished.add(number)
        self.draw(self.count())

    def count(self) -> int:
        """Count the inputs × layers of the finished shards."""
        shards = self.meter.atlas.manifest.shards
        return sum(shards[number].inputs for number in self.finished) * len(self.meter.layers)


def measure_shards(
    meter: Meter, engine: Engine, draw: Progress, journal: Journal | None
) -> list[LayerScores]:
    """Measure the shards that the journal lacks; returns the scores of all, joined."""
    totals, lock = Totals(meter.layers, meter.seed), Lock()
    work = MeteredShards(meter, draw)
    parts = {} if journal is None else journal.parts
    for number in parts:
        work.finish(number)
        totals.add(number, _reader(journal, number))

    def done(job: Job, contents: Contents) -> None:
        nonlocal journal
        number = int(job.name)
        with lock:  # an engine may have several writers
            work.finish(number)
            journal = _added(journal, number, contents)
            arrays = {name: np.asarray(values) for name, values in contents.arrays.items()}
            read = Partial(number, arrays)
            # A shard that waits for its turn need not wait in memory.
            waits = journal is not None and number != totals.turn
            totals.add(number, _reader(journal, number) if waits else lambda: read)

    missing = [number for number in range(len(meter.atlas.manifest.shards)) if number not in parts]
    with holding(work) as key:
        engine.run([_job(meter, engine, key, number) for number in missing], done)
    return totals.finish()


def run_measuring(asked: Mapping[str, Any]) -> Contents:
    """Measure one shard of an atlas; returns its scores."""

    def make() -> MeteredShards:
        atlas = StoredAtlas.open(reach(asked["atlas"]))
        only = None if asked["only"] is None else set(asked["only"])
        meter = Meter(
            atlas, seed=asked["seed"], only=only, machine=_machine(asked),
            without_sinks=asked["without_sinks"],
        )  # fmt: skip
        return MeteredShards(meter)

    partial = held(asked["held"], make).shard(asked["shard"])
    return Contents(partial.arrays)


def _job(meter: Meter, engine: Engine, key: str, shard: int) -> Job:
    asked = {
        "held": key, "atlas": str(meter.atlas.path.resolve()), "seed": meter.seed, "shard": shard,
        "only": None if meter.only is None else sorted(meter.only),
        "without_sinks": meter.without_sinks,
        "machine": asdict(meter.machine if not engine.apart else replace(meter.machine, cores=1)),
    }  # fmt: skip
    return Job(str(shard), RUN_SHARD, asked, gpus=int(meter.machine.device.startswith("cuda")))


def _machine(asked: Mapping[str, Any]) -> Machine:
    """Return the machine of a worker, which has its GPU to itself, under another number."""
    machine = Machine(**asked["machine"])
    return replace(machine, device=machine.device.partition(":")[0])


def _reader(journal: Journal | None, number: int) -> Any:
    assert journal is not None
    return lambda: Partial(number, journal.arrays(number))


def _added(journal: Journal | None, number: int, contents: Contents) -> Journal | None:
    """Write a shard into the journal; returns the journal, None where it cannot be written."""
    try:
        if journal is not None:
            journal.add(number, contents)
    except StoreError:
        return None
    return journal
