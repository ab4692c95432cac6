"""How does a capture run? It runs the missing shards, then joins all of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attention_atlas.edits.edit import Edit
from attention_atlas.engine.held import holding
from attention_atlas.engine.job import Engine, Job
from attention_atlas.names.progress import Progress, bar
from attention_atlas.record.write.corpus import Corpus
from attention_atlas.record.write.fingerprint import fingerprint
from attention_atlas.record.write.finish import finish
from attention_atlas.record.write.options import Capturing
from attention_atlas.record.write.pictures import save_pictures
from attention_atlas.record.write.plan import CapturePlan
from attention_atlas.record.write.planning import make_plan
from attention_atlas.record.write.shard import Bench
from attention_atlas.record.write.shard_job import shard_jobs
from attention_atlas.store.manifest import Manifest
from attention_atlas.store.parts import Contents
from attention_atlas.store.write import Writer, is_whole


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


def write_atlas(folder: Path, corpus: Corpus, request: Request, engine: Engine) -> None:
    """Write the atlas of a corpus into `folder`, unless it is there already."""
    given = list(corpus.given.values())
    options: dict[str, Any] = {**vars(request.capturing), "limit": request.limit}
    if request.edits:  # else the fingerprint is that of older captures
        options["edits"] = [edit.to_json() for edit in request.edits]
    mark = fingerprint(corpus.loaded, given, options)
    if not request.overwrite and _is_done(folder, mark):
        return
    planned = make_plan(corpus, request.capturing, request.loading, request.edits)
    about = {"model": corpus.loaded.name, "inputs": len(given)}
    writer = Writer(folder, mark, about, request.overwrite)
    with bar("capturing", len(given), request.progress) as draw:
        run_missing(planned.plan, corpus, writer, engine, draw)
    if planned.plan.editing is not None:
        options["edits"] = planned.plan.editing["edits"]  # with their reference inputs
    options |= {"fingerprint": mark, **({"skipped": request.skipped} if request.skipped else {})}
    finish(writer, planned, corpus.loaded, options)


def run_missing(
    plan: CapturePlan, corpus: Corpus, writer: Writer, engine: Engine, draw: Progress
) -> None:
    """Run the shards that the journal lacks; write each as soon as it is done."""

    def done(job: Job, contents: Contents) -> None:
        shard = int(job.name)
        for number in range(*plan.shards[shard]):
            save_pictures(writer.folder, number, corpus.given[number])
        writer.add(shard, contents)
        draw(writer.inputs_done)

    draw(writer.inputs_done)
    missing = writer.journal.missing(len(plan.shards))
    with holding(Bench(plan, corpus.loaded, corpus)) as key:
        engine.run(shard_jobs(plan, corpus, missing, key), done)


def _is_done(folder: Path, mark: str) -> bool:
    return is_whole(folder) and Manifest.read(folder).options.get("fingerprint") == mark
