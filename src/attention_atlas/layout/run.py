"""How does a whole atlas get its maps, in bounded memory, and again after a kill?

Heads go through in chunks that fit the device. Each chunk is a job and its result a part of the
journal, so a run that was killed resumes with those that are missing. On a GPU the vectors of the
next chunk are read while one is computed. When all are there they
become one file, put in place in one step. On a CPU there is one worker per core, or as many as an
engine has.
"""

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import torch

from attention_atlas.engine.elsewhere import reach
from attention_atlas.engine.held import held, holding
from attention_atlas.engine.job import Engine, Job
from attention_atlas.engine.local import Local
from attention_atlas.layout.chunk import ChunkVectors, make_chunk, read_vectors
from attention_atlas.layout.device import one_thread
from attention_atlas.layout.estimate import WORTH_A_PROCESS
from attention_atlas.layout.methods import METHODS
from attention_atlas.layout.plan import Chunk, Options, Task, cut_chunks, plan
from attention_atlas.layout.warm import warm_up
from attention_atlas.names.progress import bar
from attention_atlas.store.maps import Map, MapHeads, read_map, write_map
from attention_atlas.store.parts import Contents, Journal
from attention_atlas.store.reader import StoredAtlas

ORDER = {
    "scale": "c first, then keys move",
    "attention": "c first, then keys move; this is only where the map starts",
}
Watch = Callable[[int, int], None]  # takes heads done, heads in all; may raise to stop the run


@dataclass(frozen=True)
class Layout:
    """An atlas on its way to a map."""

    atlas: StoredAtlas
    options: Options
    tasks: list[Task]
    ahead: dict[str, Future[ChunkVectors]] = field(default_factory=dict)  # by chunk: being read

    def vectors(
        self, chunk: Mapping[str, Any], following: Mapping[str, Any] | None
    ) -> ChunkVectors:
        """Get the vectors of a chunk, and start to read those of the chunk after it."""
        if self.options.device == "cpu":
            return self._read(chunk)
        reading = self.ahead.pop(str(chunk), None)
        if reading is None:
            reading = self._start(chunk)
            task = self.tasks[chunk["task"]]
            width = self.atlas.layer_of(task.heads[chunk["heads"][0]]).width
            warm_up(self.options, len(task.queries), len(task.keys), width)
        vectors = reading.result()
        if following is not None:
            self.ahead[str(following)] = self._start(following)
        return vectors

    def _start(self, chunk: Mapping[str, Any]) -> Future[ChunkVectors]:
        thread = ThreadPoolExecutor(1)
        reading = thread.submit(self._read, chunk)
        thread.shutdown(wait=False)
        return reading

    def _read(self, chunk: Mapping[str, Any]) -> ChunkVectors:
        task = self.tasks[chunk["task"]]
        return read_vectors(self.atlas, task, task.heads[slice(*chunk["heads"])])

    @property
    def points(self) -> int:
        """Count the points of all heads."""
        sizes = (len(task.heads) * (len(task.queries) + len(task.keys)) for task in self.tasks)
        return sum(sizes)


def layout_atlas(
    atlas: StoredAtlas, options: Options, progress: bool = True, engine: Engine | None = None,
    watch: Watch = lambda done, total: None,
) -> Map:  # fmt: skip
    """Read the map of an atlas if it is there with the same options, else make it.

    engine  where chunks run; by default on this machine, with as many workers as suit them
    """
    options.check()
    path = atlas.path / "layouts" / f"{options.name}.safetensors"
    if path.exists():
        stored = read_map(path)
        if stored.options["asked"] == _asked(options):
            return stored
    layout = Layout(atlas, options, plan(atlas, options))
    chunks = cut_chunks(layout.tasks, options)
    # The cut depends on the memory of the device; parts of another cut do not fit.
    journal = Journal.beside(path, {**asdict(options), "cut": str(chunks)})
    with bar(f"{options.name} layout", len(chunks), progress) as show:

        def report() -> None:
            show(len(journal.parts))
            done = sum(_size(chunks[number]) for number in journal.parts)
            watch(done, sum(map(_size, chunks)))

        report()
        if engine is None or (isinstance(engine, Local) and engine.workers is None):
            engine = Local(_workers(layout))
        _run_missing(layout, chunks, journal, engine, report)
    assembled = _assembled(layout, chunks, journal)
    write_map(path, assembled)
    journal.sweep()
    return assembled


def _size(chunk: Chunk) -> int:
    return int(chunk[1].stop - chunk[1].start)


def _workers(layout: Layout) -> int:
    alone = layout.options.device != "cpu" or layout.points < WORTH_A_PROCESS
    return 1 if alone else torch.get_num_threads()


def _run_missing(
    layout: Layout, chunks: list[Chunk], journal: Journal, engine: Engine,
    report: Callable[[], None],
) -> None:  # fmt: skip
    def done(job: Job, contents: Contents) -> None:
        journal.add(int(job.name), contents)
        report()

    with holding(layout) as key:
        asked = {
            "held": key, "atlas": str(layout.atlas.path.resolve()),
            "options": asdict(layout.options),
        }  # fmt: skip
        missing = journal.missing(len(chunks))
        parts = [
            {"task": task, "heads": [heads.start, heads.stop]}
            for task, heads in (chunks[number] for number in missing)
        ]
        # Only a worker that runs all chunks in turn knows which it will get next.
        next_parts = [None] * len(parts) if engine.apart else [*parts[1:], None]
        gpus = int(layout.options.device != "cpu")
        jobs = [
            Job(str(number), "attention_atlas.layout.run:run_chunk", {
                **asked, "chunk": part, "following": following,
            }, gpus)
            for number, part, following in zip(missing, parts, next_parts, strict=False)
        ]  # fmt: skip
        engine.run(jobs, done)


def run_chunk(asked: Mapping[str, Any]) -> Contents:
    """Lay out one chunk of heads; returns its arrays."""

    def make() -> Layout:
        atlas, options = StoredAtlas.open(reach(asked["atlas"])), Options(**asked["options"])
        if options.device != "cpu":  # a worker has its GPU to itself, under another number
            options = replace(options, device=torch.device(options.device).type)
        return Layout(atlas, options, plan(atlas, options))

    layout = held(asked["held"], make)
    chunk = asked["chunk"]
    task = layout.tasks[chunk["task"]]
    with one_thread(torch.device(layout.options.device)):
        vectors = layout.vectors(chunk, asked["following"])
        heads = task.heads[slice(*chunk["heads"])]
        return Contents(make_chunk(layout.atlas, layout.options, task, heads, vectors))


def _assembled(layout: Layout, chunks: list[Chunk], journal: Journal) -> Map:
    groups, bad = {}, list[str]()
    options = layout.options
    for number, task in enumerate(layout.tasks):
        parts = [journal.arrays(chunk) for chunk, (of, _) in enumerate(chunks) if of == number]
        arrays = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        bad += [task.heads[head] for head in np.flatnonzero(arrays.pop("bad"))]
        groups[task.group] = MapHeads(
            heads=task.heads, query_tokens=task.tokens[0], key_tokens=task.tokens[1], **arrays
        )
    recorded = {
        "asked": _asked(options),
        "metric": "euclidean" if options.joint == "lift" else "cosine",
        "order": ORDER.get(options.joint, "keys move"),
        "weight of a pair for c": "exp(-(d / mean d)^2), Euclidean",
        "neighbours": METHODS[options.method].neighbours,
        "torch": str(torch.__version__),
    }
    if bad:
        recorded["not laid out"] = (
            f"{', '.join(bad)}: vectors with NaN or infinity; capture the model in float32"
        )
    return Map(recorded, groups)


def _asked(options: Options) -> dict[str, object]:
    return {name: value for name, value in asdict(options).items() if name != "device"}
