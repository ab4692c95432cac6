"""How is a file written so that it is whole or not there?

Everything is written beside its final name and renamed when whole. Whoever is killed in between
leaves a `.part` file that nobody reads. No pickle anywhere.
"""

import errno
import hashlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from safetensors.numpy import save

from attention_atlas.errors import StoreError

Array = npt.NDArray[Any]


def write_whole(path: Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a file beside `path`, then put it in place in one step."""
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(part)
        os.replace(part, path)
    except OSError as problem:
        part.unlink(missing_ok=True)
        raise _explained(path, problem) from problem


def _explained(path: Path, problem: OSError) -> StoreError:
    if problem.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreError(
            f"the disk is full: {path.name} could not be written to {path.parent}; "
            "free some space and run the same command again, it goes on where it stopped"
        )
    return StoreError(f"{path} could not be written: {problem}")


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    def write(part: Path) -> None:
        with part.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())

    write_whole(path, write)


def write_table(path: Path, table: pa.Table) -> None:
    write_whole(path, lambda part: pq.write_table(table, part, compression="zstd"))


def write_tensors(
    path: Path, tensors: Mapping[str, Array], metadata: dict[str, str] | None = None
) -> str:
    """Gives the checksum of what was written."""
    data = save({name: np.ascontiguousarray(array) for name, array in tensors.items()}, metadata)
    write_whole(path, lambda part: _write_bytes(part, data))
    return hashlib.sha256(data).hexdigest()


def _write_bytes(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise StoreError(f"{path} cannot be read: {problem}") from problem
    if not isinstance(content, dict):
        raise StoreError(f"{path} is damaged: it holds no JSON object")
    return content


def read_table(path: Path) -> pa.Table:
    try:
        return pq.read_table(path)
    except (OSError, pa.ArrowInvalid) as problem:
        raise StoreError(f"{path} is missing or damaged: {problem}") from problem
