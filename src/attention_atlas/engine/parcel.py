"""How does the result of a job travel between processes? As JSON and plain bytes, never pickled.

A result is a part (`Contents`), a part that lies in a shared folder (`Arrived`), several of these
by name, or JSON. Arrays travel as their bytes, tables as Arrow streams.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from attention_atlas.names.errors import AtlasError, InputError, ModelError, PickError, StoreError
from attention_atlas.store.arrived import Arrived
from attention_atlas.store.parts import Contents

Bytes = npt.NDArray[np.uint8]
_PROBLEMS = {kind.__name__: kind for kind in (InputError, ModelError, PickError, StoreError)}


@dataclass(frozen=True)
class Parcel:
    """A result, or the problem that a job ended with."""

    header: str  # JSON: what the buffers are
    buffers: tuple[Bytes, ...] = ()


def pack(result: Any) -> Parcel:
    """Pack the result of a job."""
    buffers: list[Bytes] = []
    header = json.dumps({"result": _described(result, buffers)})
    return Parcel(header, tuple(buffers))


def pack_problem(problem: AtlasError) -> Parcel:
    """Pack the problem that a job ended with."""
    return Parcel(json.dumps({"problem": [type(problem).__name__, str(problem)]}))


def unpack(parcel: Parcel) -> Any:
    """Return the result in a parcel; raises the problem if it holds one."""
    header = json.loads(parcel.header)
    if "problem" in header:
        kind, message = header["problem"]
        raise _PROBLEMS.get(kind, AtlasError)(message)
    return _restored(header["result"], parcel.buffers)


def send(parcel: Parcel, stream: IO[bytes]) -> None:
    """Write a parcel to a pipe."""
    sizes = [len(buffer) for buffer in parcel.buffers]
    first = json.dumps({"sizes": sizes, "header": parcel.header}).encode()
    stream.write(len(first).to_bytes(8, "little") + first)
    for buffer in parcel.buffers:
        stream.write(buffer.data)
    stream.flush()


def receive(stream: IO[bytes]) -> Parcel:
    """Read a parcel from a pipe; raises an EOFError if the other side ended."""
    length = int.from_bytes(_exactly(stream, 8).tobytes(), "little")
    first = json.loads(_exactly(stream, length).tobytes())
    return Parcel(first["header"], tuple(_exactly(stream, size) for size in first["sizes"]))


def _exactly(stream: IO[bytes], size: int) -> Bytes:
    buffer = np.empty(size, np.uint8)
    if size and stream.readinto(buffer.data) != size:  # type: ignore[attr-defined]
        raise EOFError
    return buffer


def _described(value: Any, buffers: list[Bytes]) -> dict[str, Any]:
    if isinstance(value, Arrived):
        return {"arrived": asdict(value)}
    if isinstance(value, Mapping):
        return {"parts": {name: _described(part, buffers) for name, part in value.items()}}
    if not isinstance(value, Contents):
        return {"value": value}
    arrays = {}
    for name, numbers in value.arrays.items():
        array = np.ascontiguousarray(numbers)
        arrays[name] = {"dtype": array.dtype.str, "shape": numbers.shape, "buffer": len(buffers)}
        buffers.append(array.reshape(-1).view(np.uint8))
    tables = {}
    for name, table in value.tables.items():
        tables[name] = len(buffers)
        buffers.append(_as_bytes(table))
    return {"contents": {"arrays": arrays, "tables": tables, "facts": dict(value.facts)}}


def _restored(told: Mapping[str, Any], buffers: Sequence[Bytes]) -> Any:
    if "arrived" in told:
        return Arrived(**told["arrived"])
    if "parts" in told:
        return {name: _restored(part, buffers) for name, part in told["parts"].items()}
    if "value" in told:
        return told["value"]
    contents = told["contents"]
    arrays = {
        name: buffers[about["buffer"]].view(about["dtype"]).reshape(about["shape"])
        for name, about in contents["arrays"].items()
    }
    tables = {
        name: pa.ipc.open_stream(pa.py_buffer(buffers[buffer])).read_all()
        for name, buffer in contents["tables"].items()
    }
    return Contents(arrays, tables, contents["facts"])


def _as_bytes(table: pa.Table) -> Bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return np.frombuffer(sink.getvalue(), np.uint8)
