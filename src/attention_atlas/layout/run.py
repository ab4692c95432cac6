"""How does a whole atlas get its maps, in bounded memory, and again after a kill?

Heads go through in chunks that fit the device. Each finished chunk is a file of its own beside the
final name; a run that was killed finds them and goes on. When all are there they become one file,
put in place in one step. On a CPU the chunks are shared out among one process per core.
"""

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import IO

import numpy as np
import torch
from safetensors.numpy import load_file
from torch import Tensor

from attention_atlas.layout.device import one_thread
from attention_atlas.layout.estimate import WORTH_A_PROCESS
from attention_atlas.layout.fidelity import Dots, Fidelity, Tokens, fidelity
from attention_atlas.layout.joint import join
from attention_atlas.layout.methods import METHODS, lay_out
from attention_atlas.layout.neighbours import as_points, find_neighbours
from attention_atlas.layout.plan import Chunk, Options, Task, cut_chunks, plan
from attention_atlas.layout.sample import Numbers
from attention_atlas.names.errors import AtlasError, InputError, StoreError
from attention_atlas.names.progress import bar
from attention_atlas.store.files import Array, write_tensors
from attention_atlas.store.maps import FIGURES, Group, Map, pack, read_map, write_map
from attention_atlas.store.reader import StoredAtlas

Watch = Callable[[int, int], None]  # told heads done, of how many; may raise to stop the run


def layout_atlas(
    atlas: StoredAtlas, options: Options, progress: bool = True, workers: int | None = None,
    watch: Watch = lambda done, total: None,
) -> Map:  # fmt: skip
    """The map of an atlas: read if it is there with the same options, else made."""
    options.check()
    path = atlas.path / "layouts" / f"{options.name}.safetensors"
    if path.exists():
        there = read_map(path)
        if there.options["asked"] == _asked(options):
            return there
    tasks = plan(atlas, options)
    parts = _parts_folder(atlas, options)
    chunks = cut_chunks(tasks, options)
    _make_all(atlas, options, tasks, chunks, parts, progress, workers, watch)
    made = _assembled(options, tasks, chunks, parts)
    write_map(path, made)
    shutil.rmtree(parts, ignore_errors=True)
    return made


def _make_all(
    atlas: StoredAtlas, options: Options, tasks: list[Task], chunks: list[Chunk], parts: Path,
    progress: bool, workers: int | None, watch: Watch,
) -> None:  # fmt: skip
    points = sum(len(task.heads) * (len(task.queries) + len(task.keys)) for task in tasks)
    if workers is None:
        alone = options.device != "cpu" or points < WORTH_A_PROCESS
        workers = 1 if alone else torch.get_num_threads()
    heads = [heads.stop - heads.start for _, heads in chunks]
    with bar(f"{options.name} layout", len(chunks), progress) as show:

        def told(done: int) -> None:
            show(done)
            watch(sum(heads[:done]), sum(heads))

        told(0)
        if workers == 1:
            with one_thread(torch.device(options.device)):
                make_chunks(atlas, options, tasks, chunks, parts, told)
        else:
            _share_out(atlas, options, len(chunks), parts, workers, told)


def make_chunks(
    atlas: StoredAtlas, options: Options, tasks: list[Task], chunks: list[Chunk], parts: Path,
    show: Callable[[int], None] = lambda done: None, every: slice = slice(None),
) -> None:  # fmt: skip
    for done, number in enumerate(range(len(chunks))[every]):
        path = _part(parts, number)
        if not path.exists():
            task, heads = tasks[chunks[number][0]], chunks[number][1]
            arrays = make_chunk(atlas, options, task, task.heads[heads])
            write_tensors(path, arrays)
        show(done + 1)


def make_chunk(
    atlas: StoredAtlas, options: Options, task: Task, heads: tuple[str, ...]
) -> dict[str, Array]:
    device = torch.device(options.device)

    def read(vectors: Callable[[str], Array], rows: Numbers) -> Tensor:
        return torch.from_numpy(np.stack([vectors(head)[rows] for head in heads])).to(device)

    queries, keys = read(atlas.queries, task.queries), read(atlas.keys, task.keys)
    try:
        joint = join(queries.float(), keys.float(), options.joint)
        points = as_points(joint.points(queries, keys), joint.metric)
    except InputError as problem:
        raise InputError(f"heads {heads[0]} to {heads[-1]}: {problem}") from problem
    near = find_neighbours(points, METHODS[options.method].neighbours or 1, joint.metric)
    places = lay_out(points, options.method, options.dims, near, options.seed)
    tokens = Tokens(*(torch.from_numpy(inputs).to(device) for inputs in task.inputs))
    figures = fidelity(points, Dots(queries, keys, tokens), places, options.seed)
    packed, box = pack(places.cpu().numpy())
    return {
        "places": packed,
        "box": box,
        "c": joint.c.cpu().numpy(),
        "fidelity": _columns(figures),
    }


def _columns(figures: Fidelity) -> Array:
    """(heads, 10) in the order of FIGURES."""
    columns = [figures.full]
    for of in (figures.map, figures.pca, figures.shuffled):
        columns += [of.correlation, of.trust, of.kept]
    assert len(columns) == len(FIGURES)
    return torch.stack(columns, 1).float().cpu().numpy()


def _share_out(
    atlas: StoredAtlas, options: Options, chunks: int, parts: Path, workers: int,
    show: Callable[[int], None],
) -> None:  # fmt: skip
    """One process per core, each with every so-manieth chunk; what they write is the progress."""
    asked = json.dumps({"atlas": str(atlas.path), "options": asdict(options), "workers": workers})
    with tempfile.TemporaryFile("w+") as said:
        running = [_start(number, asked, said) for number in range(workers)]
        try:
            while any(worker.poll() is None for worker in running):
                show(min(chunks, len(list(parts.glob("*.safetensors")))))
                time.sleep(0.2)
        finally:
            for worker in running:
                worker.terminate()
                worker.wait()
        show(chunks)
        if any(worker.returncode for worker in running):
            said.seek(0)
            lines = said.read().strip().splitlines()
            raise AtlasError(lines[-1] if lines else _STOPPED)


def _start(number: int, asked: str, said: IO[str]) -> "subprocess.Popen[str]":
    worker = subprocess.Popen(  # noqa: S603 - our own module, by the same Python
        [sys.executable, "-m", "attention_atlas.layout.worker", str(number)],
        stdin=subprocess.PIPE, stderr=said, text=True,
    )  # fmt: skip
    assert worker.stdin is not None
    worker.stdin.write(asked)
    worker.stdin.close()
    return worker


_STOPPED = "a layout process was stopped; run the same command again and it goes on"


def work(number: int, asked: str) -> None:
    """What one of the processes does."""
    torch.set_num_threads(1)
    what = json.loads(asked)
    atlas, options = StoredAtlas.open(what["atlas"]), Options(**what["options"])
    tasks = plan(atlas, options)
    make_chunks(
        atlas, options, tasks, cut_chunks(tasks, options), _parts_folder(atlas, options),
        every=slice(number, None, what["workers"]),
    )  # fmt: skip


def _assembled(options: Options, tasks: list[Task], chunks: list[Chunk], parts: Path) -> Map:
    groups = {}
    for number, task in enumerate(tasks):
        mine = [load_file(_part(parts, at)) for at, (of, _) in enumerate(chunks) if of == number]
        arrays = {name: np.concatenate([part[name] for part in mine]) for name in mine[0]}
        groups[task.group] = Group(
            heads=task.heads, query_tokens=task.tokens[0], key_tokens=task.tokens[1], **arrays
        )
    recorded = {
        "asked": _asked(options),
        "metric": "euclidean" if options.joint == "lift" else "cosine",
        "order": "c first, then keys move" if options.joint == "scale" else "keys move",
        "weight of a pair for c": "exp(-(d / mean d)^2), Euclidean",
        "neighbours": METHODS[options.method].neighbours,
        "torch": str(torch.__version__),
    }
    return Map(recorded, groups)


def _asked(options: Options) -> dict[str, object]:
    return {name: value for name, value in asdict(options).items() if name != "device"}


def _parts_folder(atlas: StoredAtlas, options: Options) -> Path:
    """Named after the options, so that parts of another run are never mixed in."""
    key = hashlib.sha256(json.dumps(asdict(options), sort_keys=True).encode()).hexdigest()[:12]
    folder = atlas.path / "layouts" / f"{options.name}.{key}.parts"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise StoreError(f"{folder} cannot be made: {problem}") from problem
    return folder


def _part(parts: Path, number: int) -> Path:
    return parts / f"{number:05d}.safetensors"
