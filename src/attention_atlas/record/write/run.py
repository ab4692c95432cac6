"""How does a capture run? It runs the missing shards, then joins all of them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from attention_atlas.edits.edit import Edit
from attention_atlas.engine.held import holding
from attention_atlas.engine.job import Engine, Job
from attention_atlas.names.progress import Progress, bar
from attention_atlas.record.write.corpus import Corpus
from attention_atlas.record.write.fingerprint import fingerprint
from attention_atlas.record.write.finish import Prepared, finish, prepare
from attention_atlas.record.write.foretell import foretell, refuse_without_room, tell
from attention_atlas.record.write.measuring import Measuring, scores_journal
from attention_atlas.record.write.options import ALL, AUTO, Capturing
from attention_atlas.record.write.pictures import save_pictures, with_picture_checksums
from attention_atlas.record.write.plan import CapturePlan
from attention_atlas.record.write.planning import Planned, make_plan
from attention_atlas.record.write.shard import Bench
from attention_atlas.record.write.shard_job import RUN_SHARD, refuse_objects, shard_jobs
from attention_atlas.record.write.towers import towers
from attention_atlas.record.write.vectors import draw_inputs
from attention_atlas.store.arrived import Arrived
from attention_atlas.store.freed_arrays import keep_freed_arrays
from attention_atlas.store.manifest import Manifest
from attention_atlas.store.parts import Contents
from attention_atlas.store.reader import StoredAtlas
from attention_atlas.store.write import Writer, is_whole, unfinished


@dataclass(frozen=True)
class Request:
    """What the user asked of a capture, besides its model and inputs."""

    capturing: Capturing
    limit: int | None
    skipped: list[str]  # pictures that cannot be opened
    loading: Mapping[str, Any] | None  # how another process loads the model; None: it cannot
    overwrite: bool
    progress: bool
    edits: tuple[Edit, ...] = ()
    measuring: Measuring | None = None  # needed where not all vectors are kept


def write_atlas(folder: Path, corpus: Corpus, request: Request, engine: Engine) -> None:
    """Write the atlas of a corpus into `folder`, unless it is there already."""
    given = list(corpus.given.values())
    options: dict[str, Any] = {**vars(request.capturing), "limit": request.limit}
    # What is not asked for is left out, so that the fingerprint is that of older captures.
    if request.capturing.vectors == ALL:
        del options["vectors"]
    if request.capturing.projections == AUTO:
        del options["projections"]
    if request.capturing.score_rows is None:
        del options["score_rows"]
    if request.edits:
        options["edits"] = [edit.to_json() for edit in request.edits]
    mark = fingerprint(corpus.loaded, given, options)
    if not request.overwrite and _is_done(folder, mark):
        _finish_scores(folder, request)
        return
    if engine.apart:
        refuse_objects(request.loading, corpus)
    elif request.measuring is not None and request.capturing.vectors != ALL:
        request.measuring.get_ready(corpus.loaded.model.device.type)
    keep_freed_arrays()
    begun = {} if request.overwrite else unfinished(folder)
    at_batches = not begun or bool(begun.get("at_batches"))  # as its finished shards were cut
    planned = make_plan(
        corpus, request.capturing, request.loading, request.edits, at_batches=at_batches
    )
    planned = replace(planned, plan=_with_kept(planned, corpus))
    forecast = foretell(planned, corpus)
    refuse_without_room(folder, forecast)
    about = {"model": corpus.loaded.name, "inputs": len(given), "at_batches": at_batches}
    writer = Writer(folder, mark, about, request.overwrite)
    if request.progress:
        tell(forecast)
    prepared = list[Prepared]()

    def idle() -> None:
        prepared.append(prepare(planned, corpus.loaded))

    with bar("capturing", len(given), request.progress) as draw:
        run_missing(planned.plan, corpus, writer, engine, draw, request.measuring, idle)
    if planned.plan.editing is not None:
        options["edits"] = planned.plan.editing["edits"]  # with their reference inputs
    options |= {"fingerprint": mark, **({"skipped": request.skipped} if request.skipped else {})}
    if planned.plan.kept is not None:
        options["kept_inputs"] = planned.plan.kept
    ready = prepared[0] if prepared else prepare(planned, corpus.loaded)
    finish(writer, planned, corpus.loaded, options, ready)
    _finish_scores(folder, request)


def _with_kept(planned: Planned, corpus: Corpus) -> CapturePlan:
    """Return the plan with the inputs whose vectors are kept, and what measuring others needs."""
    plan = planned.plan
    kept = draw_inputs(corpus, plan.capturing, planned.tried)
    if kept is None:
        return plan
    exact = {(layer.tower, layer.number) for layer in plan.layers if layer.exact}
    return replace(plan, kept=kept, towers=towers(planned.trial, exact))


def _finish_scores(folder: Path, request: Request) -> None:
    """Write the scores of what was measured while capturing, unless that is done."""
    journal = scores_journal(folder)
    if request.measuring is not None and journal.parts:
        request.measuring.finish(StoredAtlas.open(folder), journal)
        journal.sweep()


def run_missing(
    plan: CapturePlan, corpus: Corpus, writer: Writer, engine: Engine, draw: Progress,
    measuring: Measuring | None = None, idle: Callable[[], None] = lambda: None,
) -> None:  # fmt: skip
    """Run the shards that the journal lacks; write each as soon as it is done.

    idle  is called once no job is left to start here: the last shards may still be written
    """
    scores = scores_journal(writer.folder)
    work = RUN_SHARD if plan.kept is None or measuring is None else measuring.work

    def done(job: Job, result: Contents | Arrived | Mapping[str, Contents | Arrived]) -> None:
        shard = int(job.name)
        sums = [
            save_pictures(writer.folder, number, corpus.given[number])
            for number in range(*plan.shards[shard])
        ]
        if isinstance(result, Mapping):
            scores.add(shard, result["scores"])
            result = result["contents"]
        writer.add(shard, with_picture_checksums(result, sums))
        draw(writer.inputs_done)

    draw(writer.inputs_done)
    missing = writer.journal.missing(len(plan.shards))
    with holding(Bench(plan, corpus.loaded, corpus)) as key:
        engine.run(_then(shard_jobs(plan, corpus, missing, key, work), idle), done)


def _then(jobs: Iterable[Job], idle: Callable[[], None]) -> Iterator[Job]:
    yield from jobs
    idle()


def _is_done(folder: Path, mark: str) -> bool:
    return is_whole(folder) and Manifest.read(folder).options.get("fingerprint") == mark
