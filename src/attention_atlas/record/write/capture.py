"""How does a model with its inputs become an atlas folder?

    load ─ read ─ plan (the receipt) ─┬─ shard ─ part of the journal ─┬─ join ─ manifest
                                      └─ shard ─ part of the journal ─┘
Memory holds one shard, and those before it while they are written (one; three on many cores). A
shard depends on the plan alone, so a capture that was killed and resumed writes the same bytes.
"""

import shutil
import tempfile
import weakref
from pathlib import Path
from typing import Any

from attention_atlas.edits.table import read_edits
from attention_atlas.engine.engines import find_engine
from attention_atlas.engine.job import Engine
from attention_atlas.models.inputs import read_inputs
from attention_atlas.models.load import Loaded, load
from attention_atlas.models.loading import Loading
from attention_atlas.record.write.corpus import Corpus, without_broken_pictures
from attention_atlas.record.write.measuring import Measuring
from attention_atlas.record.write.options import SHARD_BYTES, Capturing
from attention_atlas.record.write.run import Request, write_atlas
from attention_atlas.store.lock import locked
from attention_atlas.store.reader import StoredAtlas
from attention_atlas.store.write import check_folder


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
    engine: str | Engine = "local",
    *,
    column: str | None = None,
    second_column: str | None = None,
    truncate: bool = False,
    generate: int = 0,
    dtype: Any = None,
    revision: str | None = None,
    trust_remote_code: bool = False,
    gguf_file: str | None = None,
    device_map: str | None = None,
    bits: int | None = None,
    adapter: str | Path | None = None,
    overwrite: bool = False,
    shard_bytes: int = SHARD_BYTES,
    edits: Any = (),
    vectors: str = "all",
    projections: str = "auto",
    score_rows: int | None = None,
    measuring: Measuring | None = None,
) -> StoredAtlas:
    """Run a model over inputs and store its attention; return the atlas.

    Without `path` the atlas is in a temporary folder, which is deleted with the returned object. An
    interrupted capture in `path` is resumed; a finished one of the same model, inputs and options
    is opened.

    generate   let the model write this many tokens after each input, and capture them too
    truncate   cut inputs that are too long for the model instead of refusing them
    device_map, bits, adapter  as in docs/large-models.md
    edits      changes of the forward pass; `inputs` of an edit are numbers of these inputs
    engine     where shards run: "local", "ray", or an engine as in docs/cluster.md
    vectors    whose vectors to keep: "all", "none", or "sample:20000", whole inputs drawn by `seed`
               until they have so many tokens; without "all" heads are measured while capturing
    projections  whose output projections to keep: "auto" (up to 256 MB), "all" or "none"
    score_rows  of how many rows of each input heads are measured then, drawn by `seed`; unless
               given, of 2,048 of all inputs together, and of at least 64 of each
    measuring  what measures them
    """
    capturing = Capturing(
        tuple(keep),
        batch_size,
        generate,
        truncate,
        seed,
        vectors,
        shard_bytes,
        projections,
        score_rows,
    )
    capturing.check()
    if path is not None:
        check_folder(Path(path))
    chosen_engine = find_engine(engine)
    loading = Loading(
        device,
        dtype,
        revision,
        trust_remote_code,
        gguf_file,
        device_map,
        bits,
        None if adapter is None else str(adapter),
    )
    loaded = load(model, tokenizer, **vars(loading))
    read = read_inputs(inputs, column=column, second_column=second_column, limit=limit, seed=seed)
    given, skipped = without_broken_pictures(read)
    corpus = Corpus(loaded, dict(enumerate(given)), truncate)
    sent = _sent(model, tokenizer, loading, loaded)
    request = Request(
        capturing, limit, skipped, sent, overwrite, progress, read_edits(edits), measuring
    )
    if path is not None:
        with locked(Path(path)):
            write_atlas(Path(path), corpus, request, chosen_engine)
        return StoredAtlas.open(path)
    folder = Path(tempfile.mkdtemp(prefix="attention-atlas-"))
    try:
        write_atlas(folder, corpus, request, chosen_engine)
        atlas = StoredAtlas.open(folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(atlas, shutil.rmtree, folder, ignore_errors=True)
    return atlas


def _sent(model: Any, tokenizer: Any, loading: Loading, loaded: Loaded) -> dict[str, Any] | None:
    """Return, as JSON, how another process loads this model; None if it was given as an object.

    What "auto" stands for is found here, once for all machines. A worker has its GPUs to itself, so
    they have other numbers there.
    """
    if not all(isinstance(given, str | Path | None) for given in (model, tokenizer)):
        return None
    asked = vars(loading) | {"model": _full(model)}
    if loading.device_map is None:
        asked["device"] = loaded.model.device.type
    if loading.dtype is not None:
        asked["dtype"] = str(loading.dtype).removeprefix("torch.")
    if loading.adapter is not None:
        asked["adapter"] = _full(loading.adapter)
    return asked | ({} if tokenizer is None else {"processor": _full(tokenizer)})


def _full(name: str | Path) -> str:
    """Return the whole path of a folder or file, since other processes start elsewhere."""
    path = Path(name).expanduser()
    return str(path.resolve()) if path.exists() else str(name)
