"""Model + inputs → atlas folder.

    load ─ read ─ plan (the receipt) ─┬─ shard ─ part of the journal ─┬─ join ─ manifest
                                      └─ shard ─ part of the journal ─┘
Memory holds one shard at a time, and the one before it while it is written. A shard depends on the
plan alone, so a capture that was killed and resumed writes the very same bytes.
"""

import shutil
import tempfile
import weakref
from pathlib import Path
from typing import Any

from attention_atlas.engine.engines import find_engine
from attention_atlas.engine.held import holding
from attention_atlas.engine.job import Engine, Job
from attention_atlas.models.inputs import read_inputs
from attention_atlas.models.load import load
from attention_atlas.models.loading import Loading
from attention_atlas.names.errors import InputError
from attention_atlas.names.progress import Progress, bar
from attention_atlas.record.write.corpus import Corpus, without_broken_pictures
from attention_atlas.record.write.fingerprint import fingerprint
from attention_atlas.record.write.finish import finish
from attention_atlas.record.write.options import SHARD_BYTES, Capturing, Kept
from attention_atlas.record.write.pictures import save_pictures
from attention_atlas.record.write.plan import CapturePlan
from attention_atlas.record.write.planning import make_plan
from attention_atlas.record.write.shard import Bench
from attention_atlas.record.write.shard_job import shard_jobs
from attention_atlas.store.manifest import Manifest
from attention_atlas.store.parts import Contents
from attention_atlas.store.reader import StoredAtlas
from attention_atlas.store.write import Writer, is_whole


def capture(
    model: Any,
    inputs: Any,
    tokenizer: Any = None,
    path: str | Path | None = None,
    keep: tuple[str, ...] = ("query", "key", "value"),
    batch_size: int = 8,
    device: str = "auto",
    limit: int | None = None,
    seed: int = 0,
    progress: bool = True,
    engine: str = "local",
    *,
    column: str | None = None,
    second_column: str | None = None,
    truncate: bool = False,
    generate: int = 0,
    dtype: Any = None,
    revision: str | None = None,
    trust_remote_code: bool = False,
    gguf_file: str | None = None,
    overwrite: bool = False,
    shard_bytes: int = SHARD_BYTES,
) -> StoredAtlas:
    """Run a model over inputs and store its attention; returns the atlas for reading.

    Without `path` the atlas lives in a temporary folder for as long as the object does. A folder
    that a killed capture left behind is resumed; one that is whole and equal is just opened.

    generate   let the model write that many tokens after each input and capture them as they come
    truncate   cut inputs that are too long for the model instead of refusing them
    """
    capturing = Capturing(tuple(keep), batch_size, generate, truncate, seed, shard_bytes)
    _check_options(capturing)
    runs_on = find_engine(engine)
    loading = Loading(device, dtype, revision, trust_remote_code, gguf_file)
    loaded = load(model, tokenizer, **vars(loading))
    found = read_inputs(inputs, column=column, second_column=second_column, limit=limit, seed=seed)
    given, skipped = without_broken_pictures(found)
    corpus = Corpus(loaded, dict(enumerate(given)), truncate)
    told = {**vars(capturing), "limit": limit}
    mark = fingerprint(loaded, given, told)
    folder = Path(tempfile.mkdtemp(prefix="attention-atlas-") if path is None else path)
    if overwrite or not _is_done(folder, mark):
        planned = make_plan(corpus, capturing, _sent(model, tokenizer, loading))
        about = {"model": loaded.name, "inputs": len(given)}
        writer = Writer(folder, mark, about, overwrite)
        with bar("capturing", len(given), progress) as draw:
            run_missing(planned.plan, corpus, writer, runs_on, draw)
        told |= {"fingerprint": mark, **({"skipped": skipped} if skipped else {})}
        finish(writer, planned, loaded, told)
    atlas = StoredAtlas.open(folder)
    if path is None:
        weakref.finalize(atlas, shutil.rmtree, folder, ignore_errors=True)
    return atlas


def run_missing(
    plan: CapturePlan, corpus: Corpus, writer: Writer, engine: Engine, draw: Progress
) -> None:
    """Run the shards that the journal lacks, and write each as soon as it is there."""

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


def _sent(model: Any, tokenizer: Any, loading: Loading) -> dict[str, Any] | None:
    """Describe as JSON how another process loads this model; None for one given live."""
    if not all(isinstance(given, str | Path | None) for given in (model, tokenizer)):
        return None
    asked = vars(loading) | {"model": str(model)}
    if loading.dtype is not None:
        asked["dtype"] = str(loading.dtype).removeprefix("torch.")
    return asked | ({} if tokenizer is None else {"processor": str(tokenizer)})


def _check_options(capturing: Capturing) -> None:
    unknown = [what for what in capturing.keep if what not in list(Kept)]
    if unknown or not capturing.keep:
        asked = ", ".join(unknown) or "nothing"
        raise InputError(f"asked to keep {asked}; what can be kept is {', '.join(Kept)}")
    if capturing.batch_size < 1:
        raise InputError(
            f"a batch of {capturing.batch_size} holds nothing; give a batch size from 1 up"
        )
