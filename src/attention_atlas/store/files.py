"""How is a file written so that it is complete or absent, and read so that nothing hangs?

Each file is written beside its final name and renamed when complete. A process that is killed in
between leaves a `.part` file that is never read. Nothing is pickled.
"""

import errno
import json
import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from attention_atlas.names.errors import StoreError
from attention_atlas.store.seal import (
    CHUNK,
    MARK,
    OPEN,
    Checksum,
    checksum_of,
    is_sealed,
    sealed,
)
from attention_atlas.store.stream import FileStream

Array = npt.NDArray[Any]
OLD = 2_000_000_000  # ns: a file written later than so before may change within one tick of mtime
SEAL = "seal"  # the key of a seal in JSON and in metadata
# What a damaged or hostile file makes the libraries that read it raise.
DAMAGE = (
    OSError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError,
    MemoryError, pa.ArrowException,
)  # fmt: skip


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


_LINE = 120  # characters of a mapping that is written on one line
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)
_TYPES = {
    "float64": "F64", "float32": "F32", "float16": "F16", "int64": "I64", "int32": "I32",
    "int16": "I16", "int8": "I8", "uint64": "U64", "uint32": "U32", "uint16": "U16", "uint8": "U8",
    "bool": "BOOL",
}  # fmt: skip


# Writing -----------------------------------------------------------------------------------------


def write_whole(path: Path, write: Callable[[Path], None]) -> None:
    """Call `write` with a path beside `path`, then rename that file to `path` in one step."""
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(part)
        os.replace(part, path)
    except BaseException as problem:
        with suppress(OSError):  # a read-only file system refuses this too
            part.unlink(missing_ok=True)
        if isinstance(problem, OSError):
            raise _explained(path, problem) from problem
        raise


def _explained(path: Path, problem: OSError) -> StoreError:
    if problem.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return StoreError(
            f"the disk is full: {path.name} could not be written to {path.parent}; "
            "free some space and run the same command again to resume"
        )
    if problem.errno == errno.ENAMETOOLONG:
        return StoreError(f"the name {path.name[:40]}… is too long; give a shorter one")
    return StoreError(f"{path} could not be written: {problem.strerror or problem}")


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON object, sealed."""
    data = sealed(json_text({SEAL: OPEN, **content}).encode())

    def write(part: Path) -> None:
        with part.open("wb") as file:
            file.write(data)
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


def write_bytes(path: Path, data: bytes) -> None:
    def write(part: Path) -> None:
        part.write_bytes(data)

    write_whole(path, write)


def write_tensors(
    path: Path, tensors: Mapping[str, Numbers], metadata: dict[str, str] | None = None
) -> str:
    """Write a safetensors file array by array; return its checksum. One with metadata is sealed."""
    # Wider numbers first, so that each array starts at a multiple of its own width.
    names = sorted(tensors, key=lambda name: (-tensors[name].itemsize, name))
    header: dict[str, Any] = {} if metadata is None else {"__metadata__": {SEAL: OPEN, **metadata}}
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
    text = len(text).to_bytes(8, "little") + text
    sums: list[str] = []

    def write(part: Path) -> None:
        with FileStream(part, len(text) + end) as stream:
            stream.write(text)
            for name in names:  # large ones are joined, or fetched from a GPU, only now
                array = np.ascontiguousarray(tensors[name])
                stream.write(array.reshape(-1).view(np.uint8).data)
            sums.append(stream.finish())
            if metadata is not None:
                stream.replace(text.index(OPEN.encode()) + len(MARK), sums[-1].encode())

    write_whole(path, write)
    return sums[-1]


# Reading -----------------------------------------------------------------------------------------


@contextmanager
def damage(path: Path, todo: str = "") -> Iterator[None]:
    """Turn whatever reading a damaged file raises into a StoreError that says what to do."""
    try:
        yield
    except DAMAGE as problem:
        said = " ".join(str(problem).split())[:200] or type(problem).__name__
        if isinstance(problem, OSError) and problem.strerror:
            said = problem.strerror
        advice = f"; {todo}" if todo else ""
        raise StoreError(f"{path} is missing or damaged: {said}{advice}") from problem


def is_file(path: Path) -> bool:
    """Tell whether a path names a plain file; False where the system cannot even look."""
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name too long, a folder that may not be entered
        return False


def exists(path: Path) -> bool:
    """Tell whether a path names anything; False where the system cannot even look."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def state_of(about: os.stat_result) -> tuple[int, int, int]:
    """Return what changes when a file is replaced or written to: inode, size, time."""
    return about.st_ino, about.st_size, about.st_mtime_ns


def settled_state(path: Path) -> tuple[int, int, int] | None:
    """Return the state of a file; None if there is none, or it was written just now."""
    try:
        state = state_of(path.stat())
    except (OSError, ValueError):
        return None
    return state if time.time_ns() - state[2] > OLD else None


def open_plain(path: Path) -> int:
    """Open a file for reading and return its descriptor; a pipe or a device is refused at once."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    number = os.open(path, flags | getattr(os, "O_CLOEXEC", 0))
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(errno.EINVAL, "it is not a plain file")
    return number


def read_bytes(path: Path) -> bytes:
    """Read a whole file."""
    with damage(path), os.fdopen(open_plain(path), "rb") as file:
        return file.read()


def checksum(path: Path) -> str:
    """Return the checksum of a file."""
    digest = Checksum()
    with damage(path), os.fdopen(open_plain(path), "rb", buffering=0) as file:
        while block := file.read(CHUNK):
            digest.update(block)
    return digest.hexdigest()


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object without its seal; one that has a seal is compared with it."""
    return read_sealed_json(path)[0]


def read_sealed_json(path: Path) -> tuple[dict[str, Any], bool]:
    """Read a JSON object without its seal, and whether it has one."""
    data = read_bytes(path)
    has_seal = is_sealed(data, path)
    with damage(path):
        content = json.loads(data.decode("utf-8"))
    if not isinstance(content, dict):
        raise StoreError(f"{path} is damaged: it does not hold a JSON object")
    content.pop(SEAL, None)
    return content, has_seal


def read_table(path: Path, checksum: str | None = None, todo: str = "") -> pa.Table:
    """Read a Parquet file; its bytes are compared with the checksum before they are parsed."""
    data = read_bytes(path)
    if checksum is not None and checksum_of(data) != checksum:
        advice = f"; {todo}" if todo else ""
        raise StoreError(f"{path} is damaged: its checksum does not match{advice}")
    return parse_table(path, data, todo)


def parse_table(path: Path, data: bytes, todo: str = "") -> pa.Table:
    """Parse the bytes of a Parquet file, in this thread alone.

    A thread of Arrow's that still holds the bytes when Python ends would end the process by a
    signal.
    """
    with damage(path, todo):
        return pq.ParquetFile(pa.BufferReader(data)).read(use_threads=False)
