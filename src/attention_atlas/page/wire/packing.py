"""How is a packet written as bytes?

The page asks for a path and gets one packet:

    u4 little-endian   length of the header
    header             UTF-8 JSON: the fields of one dataclass of this folder
    zeros              up to a multiple of 8
    buffers            raw little-endian numbers, each from a multiple of 8

An array in the header is `{"at": offset in the buffers, "type": "f4", "shape": [N, M]}`.
"""

import json
import struct
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Buffer:
    """The mark of a field that is sent as raw numbers: its possible types and its axes."""

    types: tuple[str, ...]
    axes: str


@dataclass(frozen=True)
class Failure:
    """The answer when a request cannot be answered."""

    error: str


def pack(answer: Any) -> bytes:
    """Return one dataclass as a packet."""
    buffers: list[Array] = []
    header = json.dumps(_plain(answer, buffers), ensure_ascii=False, allow_nan=False).encode()
    start = -(4 + len(header)) % 8
    # The numbers are copied once, into the packet: they may be ten megabytes.
    parts = [part for array in buffers for part in (array.data, bytes(-array.nbytes % 8))]
    return b"".join([struct.pack("<I", len(header)), header, bytes(start), *parts])


def _plain(value: Any, buffers: list[Array]) -> Any:
    if isinstance(value, np.ndarray):
        return _buffer(value, buffers)
    if is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name), buffers) for f in fields(value)}
    if isinstance(value, list | tuple):
        return [_plain(inner, buffers) for inner in value]
    return value


def _buffer(array: Array, buffers: list[Array]) -> dict[str, Any]:
    small = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    offset = sum(buffer.nbytes + -buffer.nbytes % 8 for buffer in buffers)
    buffers.append(small.reshape(-1).view(np.uint8))
    return {"at": offset, "type": small.dtype.str[1:], "shape": list(array.shape)}


def unpack(packet: bytes) -> dict[str, Any]:
    """Return the header of a packet with its arrays filled in, as the browser does; for tests."""
    (length,) = struct.unpack_from("<I", packet)
    header = json.loads(packet[4 : 4 + length])
    start = 4 + length + -(4 + length) % 8

    def filled(value: Any) -> Any:
        if isinstance(value, list):
            return [filled(inner) for inner in value]
        if not isinstance(value, dict):
            return value
        if set(value) == {"at", "type", "shape"}:
            count = int(np.prod(value["shape"]))
            flat = np.frombuffer(packet, "<" + value["type"], count, start + value["at"])
            return flat.reshape(value["shape"])
        return {name: filled(inner) for name, inner in value.items()}

    answer: dict[str, Any] = filled(header)
    return answer
