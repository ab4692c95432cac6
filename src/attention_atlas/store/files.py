"""How is a file written so that it is complete or absent?

Each file is written beside its final name and renamed when complete. A process that is killed in
between leaves a `.part` file that is never read. Nothing is pickled.
"""

import errno
import hashlib
import json
import os
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from attention_atlas.names.errors import StoreError

Array = npt.NDArray[Any]


class Numbers(Protocol):
    """An array, or an object that becomes one when it is written."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def itemsize(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def __array__(self) -> Array: ...


_CHUNK = 4 * 2**20
_LINE = 120  # characters of a mapping that is written on one line
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)
_TYPES = {
    "float64": "F64", "float32": "F32", "float16": "F16", "int64": "I64", "int32": "I32",
    "int16": "I16", "int8": "I8", "uint64": "U64", "uint32": "U32", "uint16": "U16", "uint8": "U8",
    "bool": "BOOL",
}  # fmt: skip


class Checksum:
    """SHA-256 over the CRC-32 of each block of 4 MiB.

    It finds damage three times as fast as SHA-256 alone, which took a large part of a capture's
    time. It does not protect against deliberate changes.
    """

    def __init__(self) -> None:
        self._blocks = hashlib.sha256()
        self._crc, self._room = 0, _CHUNK

    def update(self, data: bytes | memoryview) -> None:
        rest = memoryview(data)
        while rest:
            part, rest = rest[: self._room], rest[self._room :]
            self._crc = zlib.crc32(part, self._crc)
            self._room -= len(part)
            if not self._room:
                self._blocks.update(self._crc.to_bytes(4, "little"))
                self._crc, self._room = 0, _CHUNK

    def hexdigest(self) -> str:
        digest = self._blocks.copy()
        if self._room < _CHUNK:
            digest.update(self._crc.to_bytes(4, "little"))
        return digest.hexdigest()


def write_whole(path: Path, write: Callable[[Path], None]) -> None:
    """Call `write` with a path beside `path`, then rename that file to `path` in one step."""
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(part)
        os.replace(part, path)
    except OSError as problem:
        with suppress(OSError):  # a read-only file system refuses this too
            part.unlink(missing_ok=True)
        raise _explained(path, problem) from problem


def _explained(path: Path, problem: OSError) -> StoreError:
    if problem.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreError(
            f"the disk is full: {path.name} could not be written to {path.parent}; "
            "free some space and run the same command again to resume"
        )
    return StoreError(f"{path} could not be written: {problem}")


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    text = json_text(content)

    def write(part: Path) -> None:
        with part.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())

    write_whole(path, write)


def json_text(content: Mapping[str, Any]) -> str:
    """Return content as JSON, on lines short enough to read."""
    return _lines(content, "\n") + "\n"


def _lines(value: Any, line: str) -> str:
    """Return a value as JSON, with mappings and lists of mappings on several lines.

    Lists of numbers, and mappings that are short, stay on one line: Python's encoder is written in
    C only for JSON without indents, and large models have a hundred thousand numbers in a list.
    """
    nested = isinstance(value, list | tuple) and any(isinstance(x, Mapping) for x in value)
    if isinstance(value, Mapping):
        plain = all(not isinstance(x, Mapping | list | tuple) for x in value.values())
        nested = not plain or len(_ENCODER.encode(value)) > _LINE
    if not nested:
        return _ENCODER.encode(value)
    inner = line + " "
    if isinstance(value, Mapping):
        entries = (f"{_ENCODER.encode(name)}: {_lines(value[name], inner)}" for name in value)
        return "{" + inner + f",{inner}".join(entries) + line + "}"
    return "[" + inner + f",{inner}".join(_lines(entry, inner) for entry in value) + line + "]"


def write_table(path: Path, table: pa.Table) -> None:
    write_whole(path, lambda part: pq.write_table(table, part, compression="zstd"))


def write_tensors(
    path: Path, tensors: Mapping[str, Numbers], metadata: dict[str, str] | None = None
) -> str:
    """Write a safetensors file array by array; return its checksum."""
    # Wider numbers first, so that each array starts at a multiple of its own width.
    names = sorted(tensors, key=lambda name: (-tensors[name].itemsize, name))
    header: dict[str, Any] = {} if metadata is None else {"__metadata__": metadata}
    end = 0
    for name in names:
        array = tensors[name]
        start, end = end, end + array.nbytes
        header[name] = {
            "dtype": _TYPES[array.dtype.name],
            "shape": array.shape,
            "data_offsets": (start, end),
        }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    digest = Checksum()

    def write(part: Path) -> None:
        with part.open("wb", buffering=0) as file:
            _stream(file, digest, len(text).to_bytes(8, "little") + text)
            for name in names:
                array = np.ascontiguousarray(tensors[name])
                _stream(file, digest, array.reshape(-1).view(np.uint8).data)

    write_whole(path, write)
    return digest.hexdigest()


def _stream(file: FileIO, digest: Checksum, data: bytes | memoryview) -> None:
    """Write data in chunks, update its checksum and drop it from the system's cache.

    New cache pages for a file of gigabytes cost more than everything else here, and displace pages
    that other programs need.
    """
    for start in range(0, len(data), _CHUNK):
        chunk = memoryview(data)[start : start + _CHUNK]
        digest.update(chunk)
        while chunk:
            chunk = chunk[file.write(chunk) :]
        if len(data) - start >= _CHUNK and hasattr(os, "posix_fadvise"):
            os.fdatasync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, file.tell(), os.POSIX_FADV_DONTNEED)


def checksum(path: Path) -> str:
    """Return the checksum of a file."""
    digest = Checksum()
    with path.open("rb", buffering=0) as file:
        while block := file.read(_CHUNK):
            digest.update(block)
    return digest.hexdigest()


def read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise StoreError(f"{path} cannot be read: {problem}") from problem
    if not isinstance(content, dict):
        raise StoreError(f"{path} is damaged: it does not hold a JSON object")
    return content


def read_table(path: Path) -> pa.Table:
    try:
        return pq.read_table(path)
    except (OSError, pa.ArrowInvalid) as problem:
        raise StoreError(f"{path} is missing or damaged: {problem}") from problem
