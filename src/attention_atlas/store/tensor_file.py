"""How are single tensors, or parts of them, read from a safetensors file that may be damaged?

The file is read by offset (pread), never mapped into memory: a mapped file that another program
shortens kills the process that looks at it (SIGBUS), a read says how many bytes there were. The
header is checked when the file is opened: every tensor lies inside the file and has the size that
its shape and type say. A file that changes while it is open is refused.
"""

import json
import math
import os
import time
import zlib
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from cachetools import LRUCache

from attention_atlas.names.errors import StoreError
from attention_atlas.store import files
from attention_atlas.store.cores import each
from attention_atlas.store.files import Array
from attention_atlas.store.form import Ints
from attention_atlas.store.freed_arrays import keep_freed_arrays
from attention_atlas.store.seal import CHUNK, DIGITS, checksum_of_blocks, seal_place

EVERY = slice(None)
_DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?",
}  # fmt: skip
_LONGEST_HEADER = 100_000_000  # bytes, as in the safetensors library
_AT_ONCE = 2**30  # bytes of one read; systems stop at 2 GiB
SPAN = 4 * CHUNK  # bytes of a file that one thread compares with its checksum
_PIECE = 2**18  # bytes read at once for a checksum; a first read into 4 MiB takes 50 ms more
WORTH_A_READ = 2**14  # bytes that take as long as one more read
_OPEN_FILES = 64  # kept open; an atlas may have thousands, a process about a thousand
MOST_AHEAD = 64  # pieces that the disk is told of before the first is read
_reading = Lock()  # only where a system has no pread


class _Descriptor:
    """An open file; closed when nobody refers to it."""

    def __init__(self, path: Path):
        self.number = files.open_plain(path)

    def __del__(self) -> None:
        if hasattr(self, "number"):
            os.close(self.number)


_open_files: LRUCache[tuple[Path, tuple[int, ...]], _Descriptor] = LRUCache(_OPEN_FILES)
_verified: LRUCache[tuple[str, tuple[int, ...], str], None] = LRUCache(4096)
_lock = Lock()


class TensorKind(NamedTuple):
    """The shape and the type of a tensor."""

    shape: tuple[int, ...]
    dtype: "np.dtype[Any]"


@dataclass(frozen=True)
class _Entry:
    """One tensor: its type, shape and first byte in the file."""

    dtype: "np.dtype[Any]"
    shape: tuple[int, ...]
    start: int


class TensorFile:
    """A safetensors file, read on demand. Raises a StoreError for whatever is wrong with it."""

    def __init__(self, path: Path, todo: str = "capture it again"):
        self.path, self._todo = path, todo
        self._held: npt.NDArray[np.uint8] | None = None  # the whole file, where it is in memory
        with files.damage(path, todo):
            first = _Descriptor(path)
            self._state = _state(first.number)
            with _lock:
                _open_files[path, self._state] = first
            self.size = self._state[1]
            self._header = self._read_header()
            self._entries, self.metadata = self._checked(json.loads(self._header))
        self.names = set(self._entries)

    def verify(self, checksum: str) -> None:
        """Compare the file with a checksum; raise a StoreError if it differs."""
        self._compare(checksum, None)

    def verify_seal(self) -> bool:
        """Compare the file with its own seal; return whether it has one."""
        place = seal_place(self._header)
        if place is None:
            return False
        digits = self._header[place : place + DIGITS]
        self._compare(digits.decode(), 8 + place)
        return True

    def hold(self, checksum: str) -> None:
        """Read the whole file into memory and compare it with a checksum on the way."""
        held = np.empty(self.size, np.uint8)
        self._compare(checksum, None, held)
        held.flags.writeable = False
        self._held = held

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a tensor."""
        return self._entry(name).shape

    def dtype(self, name: str) -> "np.dtype[Any]":
        """Return the type of a tensor's numbers."""
        return self._entry(name).dtype

    def tensor(self, name: str) -> Array:
        """Read a tensor as it is stored, entirely."""
        entry = self._entry(name)
        return self._numbers(entry, entry.shape, [(entry.start, math.prod(entry.shape))])

    def part(self, name: str, first: Ints, second: Ints | slice = EVERY) -> Array:
        """Read a tensor at indexes of its first and second axis, and nothing else."""
        entry = self._entry(name)
        count, length, *rest = (*entry.shape, 1, 1)[: max(2, len(entry.shape))]
        columns = [_bounded(second, length)] if isinstance(second, slice) else runs(second)
        rows = runs(first)
        _need(_lowest(rows) >= 0 and _highest(rows) <= count, self.path, name, self._todo)
        _need(_lowest(columns) >= 0 and _highest(columns) <= length, self.path, name, self._todo)
        cell, width = math.prod(rest), entry.dtype.itemsize
        wide = sum(run.stop - run.start for run in columns)
        if columns == [slice(0, length)]:  # whole rows lie side by side
            spans = [(run.start * length, (run.stop - run.start) * length) for run in rows]
        else:
            spans = [
                (row * length + run.start, run.stop - run.start)
                for rows_run in rows
                for row in range(rows_run.start, rows_run.stop)
                for run in columns
            ]
        bytes_of = [(entry.start + place * cell * width, size * cell) for place, size in spans]
        shape = (sum(run.stop - run.start for run in rows), wide, *entry.shape[2:])
        return self._numbers(entry, shape, bytes_of)

    def fill(self, name: str, first: Ints, second: Ints, target: Array) -> None:
        """Read a tensor (H, N, D) at indexes of its first two axes into an array of their shape.

        Runs of neighbours go from the file to their place without a copy. Where they are so many
        that one read of the whole costs less, that is read and cut.
        """
        entry, columns = self._entry(name), runs(second)
        _, length, width = entry.shape
        cell = width * entry.dtype.itemsize
        many = len(columns) * WORTH_A_READ > length * cell
        if many or target.dtype != entry.dtype or not target[:1].flags.c_contiguous:
            target[:] = self.part(name, first)[:, second]
            return
        inside = _highest(columns) <= length and first.max(initial=0) < entry.shape[0]
        _need(inside and _lowest(columns) >= 0, self.path, name, self._todo)
        file, ends = self._opened(), np.cumsum([run.stop - run.start for run in columns]).tolist()
        pieces = []
        for place, number in enumerate(first.tolist()):
            head = target[place].reshape(-1).view(np.uint8).data
            start = entry.start + number * length * cell
            for run, end in zip(columns, ends, strict=True):
                piece = head[(end - run.stop + run.start) * cell : end * cell]
                pieces.append((piece, start + run.start * cell))
        self._read_all(file, pieces)

    def length(self, name: str) -> int:
        """Return how many entries the first axis of a tensor has."""
        return self.shape(name)[0]

    def kind(self, name: str) -> TensorKind:
        """Return the shape and the type of a tensor."""
        entry = self._entry(name)
        return TensorKind(entry.shape, entry.dtype)

    def _entry(self, name: str) -> _Entry:
        try:
            return self._entries[name]
        except KeyError:
            raise StoreError(f"{self.path} is damaged: it has no {name}; {self._todo}") from None

    def _numbers(
        self, entry: _Entry, shape: tuple[int, ...], spans: list[tuple[int, int]]
    ) -> Array:
        """Read spans, each a first byte and a count of numbers, one after the other."""
        if self._held is not None and len(spans) == 1:
            start, count = spans[0]
            own = self._held[start : start + count * entry.dtype.itemsize]
            return own.view(entry.dtype).reshape(shape)
        numbers = np.empty(shape, entry.dtype)
        target, done = numbers.reshape(-1).view(np.uint8).data, 0
        pieces = []
        for start, count in spans:
            size = count * entry.dtype.itemsize
            pieces.append((target[done : done + size], start))
            done += size
        self._read_all(self._opened(), pieces)
        return numbers

    def _opened(self) -> _Descriptor:
        """Return the open file, unless it is no longer what it was when it was checked."""
        key = self.path, self._state
        with files.damage(self.path, self._todo), _lock:
            file = _open_files.get(key)
            if file is None:
                file = _open_files[key] = _Descriptor(self.path)
            now = _state(file.number)
        if now != self._state:
            raise StoreError(f"{self.path} was changed while it was open; open the atlas again")
        return file

    def _read_all(self, file: _Descriptor, pieces: list[tuple[memoryview, int]]) -> None:
        """Read pieces, each from its place in the file."""
        if 1 < len(pieces) <= MOST_AHEAD and hasattr(os, "posix_fadvise"):
            for piece, start in pieces:  # the disk looks for all of them at the same time
                os.posix_fadvise(file.number, start, len(piece), os.POSIX_FADV_WILLNEED)
        with files.damage(self.path, self._todo):
            for target, start in pieces:
                while target:
                    count = _read_at(file.number, target[:_AT_ONCE], start)
                    if not count:
                        raise StoreError(f"{self.path} is damaged: it is cut off; {self._todo}")
                    target, start = target[count:], start + count

    def _bytes(self, start: int, size: int) -> bytearray:
        data = bytearray(size)
        self._read_all(self._opened(), [(memoryview(data), start)])
        return data

    def _read_header(self) -> bytes:
        if self.size < 8:
            raise ValueError("it is cut off")
        size = int.from_bytes(self._bytes(0, 8), "little")
        if size > min(self.size - 8, _LONGEST_HEADER):
            raise ValueError(f"its header of {size} bytes does not fit")
        return bytes(self._bytes(8, size))

    def _checked(self, header: Any) -> tuple[dict[str, _Entry], dict[str, str]]:
        """Return the tensors and the metadata of a header; raise a ValueError if it is wrong."""
        if not isinstance(header, dict):
            raise ValueError("its header is no JSON object")
        metadata = header.pop("__metadata__", {})
        if not isinstance(metadata, dict) or not all(
            isinstance(value, str) for value in metadata.values()
        ):
            raise ValueError("its metadata are not texts")
        first = 8 + len(self._header)
        entries = {}
        for name, about in header.items():
            dtype = np.dtype(_DTYPES[about["dtype"]])
            shape, (start, end) = tuple(about["shape"]), about["data_offsets"]
            whole = (*shape, start, end)
            if not all(type(number) is int and 0 <= number <= self.size for number in whole):
                raise ValueError(f"{name} lies outside of the file")
            inside = first + end <= self.size and len(shape) <= 8
            if not inside or end - start != math.prod(shape) * dtype.itemsize:
                raise ValueError(f"{name} does not have the size of its shape")
            entries[name] = _Entry(dtype, shape, first + start)
        return entries, metadata

    def _compare(
        self, checksum: str, zeros_at: int | None, held: npt.NDArray[np.uint8] | None = None
    ) -> None:
        """Compare the file with a checksum, unless that was done; fill `held` with its bytes."""
        key = str(self.path), self._state, checksum
        with _lock:
            if key in _verified and held is None:
                return
        file = self._opened()
        keep_freed_arrays(CHUNK)
        spans = [range(start, min(start + SPAN, self.size)) for start in range(0, self.size, SPAN)]
        sums = each(lambda span: self._block_sums(file, span, zeros_at, held), spans)
        if checksum_of_blocks(chain.from_iterable(sums)) != checksum:
            raise StoreError(f"{self.path} is damaged: its checksum does not match; {self._todo}")
        if time.time_ns() - self._state[2] > files.OLD:
            with _lock:
                _verified[key] = None

    def _block_sums(
        self, file: _Descriptor, span: range, zeros_at: int | None,
        held: npt.NDArray[np.uint8] | None,
    ) -> list[int]:  # fmt: skip
        """Return the CRC-32 of each block of a span of bytes; they are read into `held`, if any."""
        buffer, sums = memoryview(bytearray(min(_PIECE, len(span)))), []
        if hasattr(os, "posix_fadvise"):  # many threads read one file: none looks sequential
            os.posix_fadvise(file.number, span.start, len(span), os.POSIX_FADV_WILLNEED)
        for first in span[::CHUNK]:
            crc, end = 0, min(first + CHUNK, span.stop)
            for start in range(first, end, _PIECE):
                size = min(_PIECE, end - start)
                piece = buffer[:size] if held is None else held[start : start + size].data
                self._read_all(file, [(piece, start)])
                if zeros_at is not None:
                    _zero(piece, zeros_at - start)
                crc = zlib.crc32(piece, crc)
            sums.append(crc)
        return sums


def runs(index: Ints) -> list[slice]:
    """Return indexes as slices of neighbours: 3 4 5 9 → 3:6, 9:10."""
    if not len(index):
        return []
    if len(index) < 2 or (np.diff(index) == 1).all():
        return [slice(int(index[0]), int(index[-1]) + 1)]
    cuts = np.flatnonzero(np.diff(index) != 1) + 1
    return [slice(int(run[0]), int(run[-1]) + 1) for run in np.split(index, cuts)]


def _bounded(span: slice, length: int) -> slice:
    return slice(span.start or 0, length if span.stop is None else span.stop)


def _lowest(spans: list[slice]) -> int:
    return min((int(span.start) for span in spans), default=0)


def _highest(spans: list[slice]) -> int:
    return max((int(span.stop) for span in spans), default=0)


def _need(inside: bool, path: Path, name: str, todo: str) -> None:
    if not inside:
        raise StoreError(f"{path} is damaged: {name} is shorter than its blocks say; {todo}")


def _zero(block: memoryview, place: int) -> None:
    """Set the digits of a seal to zeros, as far as they lie in a block."""
    first, last = max(0, place), min(len(block), place + DIGITS)
    if first < last:
        block[first:last] = b"0" * (last - first)


def _state(number: int) -> tuple[int, ...]:
    """Return what changes when an open file is replaced or written to: inode, size, time."""
    return files.state_of(os.fstat(number))


def _read_at(number: int, target: memoryview, start: int) -> int:
    """Read bytes of a file from an offset on; return how many there were."""
    if hasattr(os, "preadv"):
        return os.preadv(number, [target], start)
    with _reading:
        os.lseek(number, start, os.SEEK_SET)
        data = os.read(number, len(target))
    target[: len(data)] = data
    return len(data)
