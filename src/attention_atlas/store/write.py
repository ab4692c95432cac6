"""How does an atlas grow on disk so that an interruption costs at most one shard?

capture.json           what is captured; written first, deleted at the end
vectors/00000.safetensors
parts/                 the journal: the tables of each shard, with tokens numbered from 0
inputs.parquet tokens.parquet
atlas.json             written when all of the above is complete
"""

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from attention_atlas.names.errors import StoreError
from attention_atlas.store import files
from attention_atlas.store.arrived import Arrived
from attention_atlas.store.labels import LABELS
from attention_atlas.store.lock import LOCK
from attention_atlas.store.manifest import NAME, Manifest, Shard
from attention_atlas.store.output import OUTPUT
from attention_atlas.store.parts import Contents, Journal, Part
from attention_atlas.store.relations import RELATIONS
from attention_atlas.store.scores import KINDS, SCORES, WITHOUT_SINKS

JOURNAL = "capture.json"
# All files of an atlas, in the order of deletion. The manifest comes first: without it the folder
# no longer counts as a finished atlas.
OURS = (
    NAME, JOURNAL, "vectors", "parts", "images", "layouts", "inputs.parquet", "tokens.parquet",
    SCORES, KINDS, *WITHOUT_SINKS, LABELS, RELATIONS, OUTPUT, "*.parts", "*.part",
)  # fmt: skip


class Writer:
    """A folder into which shards are written in any order and then joined into an atlas."""

    def __init__(self, folder: Path, fingerprint: str, about: dict[str, Any], overwrite: bool):
        self.folder = folder
        if overwrite and (is_whole(folder) or (folder / JOURNAL).exists()):
            _clear(folder)
        else:
            _refuse_what_is_not_ours(folder, fingerprint)
        if not (folder / JOURNAL).exists():
            files.write_json(folder / JOURNAL, {"fingerprint": fingerprint, "about": about})
        self.journal = Journal(folder / "parts", arrays_in=folder / "vectors")

    @property
    def parts(self) -> list[Part]:
        return list(self.journal.parts.values())

    @property
    def inputs_done(self) -> int:
        return sum(part.rows["inputs"] for part in self.parts)

    @property
    def shards(self) -> tuple[Shard, ...]:
        """Return the shards as the manifest lists them."""
        return tuple(
            Shard(
                self.journal.arrays_path(part.number).relative_to(self.folder).as_posix(),
                part.rows["inputs"], part.bytes, part.checksum,
            )
            for part in self.parts
        )  # fmt: skip

    def add(self, number: int, contents: Contents | Arrived) -> None:
        """Write one shard; its tables are `inputs` and `tokens`."""
        self.journal.add(number, contents)

    def draft(self, **about: Any) -> Manifest:
        """Return the manifest of the shards so far, without its tables."""
        tokens = sum(part.rows["tokens"] for part in self.parts)
        return Manifest(
            inputs=self.inputs_done, tokens=tokens, shards=self.shards, tables={}, **about
        )

    def finish(self, **about: Any) -> None:
        """Join the tables, write the manifest, delete the journal."""
        missing = self.journal.missing(1 + max(self.journal.parts, default=-1))
        if missing:
            raise StoreError(f"{self.folder} lacks shard {missing[0]}; capture it again")
        sums = {}
        for name, tables in (("inputs", self._tables("inputs")), ("tokens", self._numbered())):
            path = self.folder / f"{name}.parquet"
            files.write_table(path, pa.concat_tables(tables, promote_options="permissive"))
            sums[path.name] = files.checksum(path)
        replace(self.draft(**about), tables=sums).write(self.folder)
        self.journal.sweep()
        (self.folder / JOURNAL).unlink(missing_ok=True)
        for pattern in (
            "*.part",
            "vectors/*.part",
            "images/*.part",
        ):  # of a process that was killed
            for left in self.folder.glob(pattern):
                if left.name != LOCK:
                    left.unlink(missing_ok=True)

    def token_ids(self) -> set[int]:
        """Return the numbers of all tokens in the vocabulary that occur in the shards."""
        return {
            number
            for table in self._tables("tokens")
            for number in table["id"].unique().to_pylist()
        }

    def _tables(self, name: str) -> Iterator[pa.Table]:
        return (self.journal.table(part.number, name) for part in self.parts)

    def _numbered(self) -> Iterator[pa.Table]:
        """Yield the tables of tokens, numbered through the whole atlas."""
        first = 0
        for table in self._tables("tokens"):
            numbers = pa.array(np.arange(first, first + table.num_rows))
            first += table.num_rows
            yield table.set_column(table.column_names.index("token"), "token", numbers)


def is_whole(folder: Path) -> bool:
    """Tell whether a folder holds a finished atlas."""
    return files.is_file(folder / NAME)


def check_folder(folder: Path) -> None:
    """Raise a StoreError if no atlas can be written to this path: a file, a name too long."""
    try:
        os.fsencode(folder)  # a name with half of a character only seems to be free
        is_folder = folder.is_dir() or not folder.exists()
    except (OSError, ValueError) as problem:
        said = getattr(problem, "strerror", None) or problem
        name = str(folder).encode(errors="replace").decode()
        short = name if len(name) < 100 else f"{name[:60]}…"
        raise StoreError(f"{short} cannot be an atlas: {said}; name another folder") from problem
    if not is_folder:
        raise StoreError(f"{folder} is a file; name a folder for the atlas")


def _clear(folder: Path) -> None:
    """Delete the files of an atlas, and nothing else."""
    for pattern in OURS:
        for path in folder.glob(pattern):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def unfinished(folder: Path) -> dict[str, Any]:
    """Return what a capture that was begun in a folder says of itself; nothing if none was."""
    if not files.exists(folder / JOURNAL):
        return {}
    about: dict[str, Any] = files.read_json(folder / JOURNAL).get("about", {})
    return about


def _refuse_what_is_not_ours(folder: Path, fingerprint: str) -> None:
    journal = folder / JOURNAL
    if is_whole(folder):
        raise StoreError(
            f"{folder} already holds an atlas of another model, other inputs or other options; "
            "name another folder, or overwrite it with --overwrite"
        )
    if files.exists(journal):
        if files.read_json(journal).get("fingerprint") != fingerprint:
            raise StoreError(
                f"{folder} was begun with another model, other inputs or other options; "
                "finish that one, name another folder, or start again with --overwrite"
            )
    elif folder.exists() and any(
        entry for entry in folder.iterdir() if not entry.name.endswith(".part")
    ):
        raise StoreError(f"{folder} is not empty and not an atlas; name another folder")
