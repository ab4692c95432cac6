"""How does an atlas grow on disk so that being killed costs at most one shard?

capture.json           what is being captured; written first, gone at the end
vectors/00000.safetensors
parts/00000.*          the tables of that shard; parts/00000.json, written last, makes it count
inputs.parquet tokens.parquet
atlas.json             written when all of the above is whole
"""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from attention_atlas.names.errors import StoreError
from attention_atlas.store import files
from attention_atlas.store.files import Numbers
from attention_atlas.store.manifest import NAME, Manifest, Shard

JOURNAL = "capture.json"


@dataclass(frozen=True)
class Part:
    """One whole shard as its journal entry tells it."""

    shard: Shard
    tokens: int
    facts: dict[str, Any]


class Writer:
    """Adds shards to a folder, going on after those that are already whole."""

    def __init__(self, folder: Path, fingerprint: str, about: dict[str, Any], overwrite: bool):
        self.folder = folder
        if overwrite and (is_whole(folder) or (folder / JOURNAL).exists()):
            _clear(folder)
        _refuse_what_is_not_ours(folder, fingerprint)
        if not (folder / JOURNAL).exists():
            files.write_json(folder / JOURNAL, {"fingerprint": fingerprint, "about": about})
        self.parts = _whole_parts(folder)

    @property
    def inputs_done(self) -> int:
        return sum(part.shard.inputs for part in self.parts)

    @property
    def tokens_done(self) -> int:
        return sum(part.tokens for part in self.parts)

    def add(
        self,
        tensors: Mapping[str, Numbers],
        inputs: pa.Table,
        tokens: pa.Table,
        facts: dict[str, Any],
    ) -> None:
        number = f"{len(self.parts):05d}"
        vectors = self.folder / "vectors" / f"{number}.safetensors"
        parts = self.folder / "parts"
        checksum = files.write_tensors(vectors, tensors)
        files.write_table(parts / f"{number}.inputs.parquet", inputs)
        files.write_table(parts / f"{number}.tokens.parquet", tokens)
        entry = {
            "inputs": inputs.num_rows,
            "tokens": tokens.num_rows,
            "bytes": vectors.stat().st_size,
            "checksum": checksum,
            "facts": facts,
        }
        files.write_json(parts / f"{number}.json", entry)
        self.parts.append(_part(number, entry))

    def finish(self, **about: Any) -> None:
        """Join the tables, write the manifest, sweep up."""
        sums = {}
        for name in ("inputs", "tokens"):
            pieces = [
                files.read_table(self.folder / "parts" / f"{number:05d}.{name}.parquet")
                for number in range(len(self.parts))
            ]
            path = self.folder / f"{name}.parquet"
            files.write_table(path, pa.concat_tables(pieces, promote_options="permissive"))
            sums[path.name] = files.checksum(path)
        Manifest(
            inputs=self.inputs_done,
            tokens=self.tokens_done,
            shards=tuple(part.shard for part in self.parts),
            tables=sums,
            **about,
        ).write(self.folder)
        sweep(self.folder)


def is_whole(folder: Path) -> bool:
    return (folder / NAME).is_file()


def sweep(folder: Path) -> None:
    """Take away what only the build needed."""
    shutil.rmtree(folder / "parts", ignore_errors=True)
    (folder / JOURNAL).unlink(missing_ok=True)


def _clear(folder: Path) -> None:
    # The manifest goes first: from then on nobody takes the folder for a whole atlas.
    (folder / NAME).unlink(missing_ok=True)
    for name in ("vectors", "parts", "images", "layouts"):
        shutil.rmtree(folder / name, ignore_errors=True)
    for name in (
        "inputs.parquet",
        "tokens.parquet",
        "scores.parquet",
        "kinds.parquet",
        "labels.parquet",
        JOURNAL,
    ):
        (folder / name).unlink(missing_ok=True)


def _refuse_what_is_not_ours(folder: Path, fingerprint: str) -> None:
    journal = folder / JOURNAL
    if is_whole(folder):
        raise StoreError(
            f"{folder} already holds an atlas of another model, other inputs or other options; "
            "name another folder, or overwrite it with --overwrite"
        )
    if journal.exists():
        if files.read_json(journal).get("fingerprint") != fingerprint:
            raise StoreError(
                f"{folder} was begun with another model, other inputs or other options; "
                "finish that one, name another folder, or start anew with --overwrite"
            )
    elif folder.exists() and any(
        entry for entry in folder.iterdir() if not entry.name.endswith(".part")
    ):
        raise StoreError(f"{folder} is not empty and not an atlas; name another folder")


def _part(number: str, entry: dict[str, Any]) -> Part:
    shard = Shard(
        f"vectors/{number}.safetensors", entry["inputs"], entry["bytes"], entry["checksum"]
    )
    return Part(shard, entry["tokens"], entry["facts"])


def _whole_parts(folder: Path) -> list[Part]:
    parts: list[Part] = []
    while (path := folder / "parts" / f"{len(parts):05d}.json").exists():
        part = _part(f"{len(parts):05d}", files.read_json(path))
        vectors = folder / part.shard.file
        if not vectors.is_file() or vectors.stat().st_size != part.shard.bytes:
            break
        parts.append(part)
    return parts
