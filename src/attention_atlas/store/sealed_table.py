"""How is a table that is added to an atlas later stored, so that damage to it is noticed?

Scores, kinds, relations and labels are Parquet files. Under `attention_atlas` their metadata hold a
JSON object that says what they are, and under `seal` the checksum of the file (see `seal`).
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from attention_atlas.names.errors import StoreError
from attention_atlas.store import files
from attention_atlas.store.seal import OPEN, checksum_of, is_sealed, sealed

FORMAT = 2  # 1 had no seals
_ABOUT, _SEAL = b"attention_atlas", b"seal"
_KINDS = {
    "text": lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind)
    or (pa.types.is_dictionary(kind) and pa.types.is_string(kind.value_type)),
    "number": lambda kind: pa.types.is_floating(kind) or pa.types.is_integer(kind),
    "whole": pa.types.is_integer,
    "flag": pa.types.is_boolean,
    "texts": lambda kind: pa.types.is_list(kind)
    and (pa.types.is_string(kind.value_type) or pa.types.is_null(kind.value_type)),
    "wholes": lambda kind: pa.types.is_list(kind)
    and (pa.types.is_integer(kind.value_type) or pa.types.is_null(kind.value_type)),
}  # fmt: skip


@dataclass(frozen=True)
class SealedTable:
    """A table with what it says of itself, and the checksum of its file."""

    table: pa.Table
    about: dict[str, Any]
    checksum: str


def write_sealed(path: Path, table: pa.Table, about: dict[str, Any]) -> str:
    """Write a table with its metadata and seal; return the checksum of the file."""
    metadata = {_ABOUT: json.dumps({"format": FORMAT, **about}).encode(), _SEAL: OPEN.encode()}
    sink = pa.BufferOutputStream()
    pq.write_table(table.replace_schema_metadata(metadata), sink, compression="zstd")
    data = sealed(sink.getvalue().to_pybytes(), last=True)
    files.write_bytes(path, data)
    return checksum_of(data)


def read_sealed(path: Path, todo: str) -> SealedTable:
    """Read a table with its metadata; raise a StoreError, with what to do, if it is damaged."""
    data = files.read_bytes(path)
    try:
        has_seal = is_sealed(data, path, last=True)
    except StoreError as problem:
        raise StoreError(f"{problem}; {todo}") from problem
    table = files.parse_table(path, data, todo)
    with files.damage(path, todo):
        raw = (table.schema.metadata or {})[_ABOUT]
        about = _about(raw)
        version = about.get("format", 0)
        if type(version) is not int:
            raise ValueError("it has no format version")
    if version > FORMAT:
        raise StoreError(f"{path.name} is from a newer version; upgrade attention-atlas")
    if version > 1 and not has_seal:
        raise StoreError(f"{path} is damaged: it has no checksum; {todo}")
    return SealedTable(table, about, checksum_of(data))


def _about(raw: bytes) -> dict[str, Any]:
    """Return what a table says of itself; relations of format 1 only name their atlas."""
    if not raw.startswith(b"{"):
        return {"format": 1, "atlas": raw.decode()}
    about: dict[str, Any] = json.loads(raw)
    return about


def frame_of(
    path: Path, table: pa.Table, columns: dict[str, str], todo: str, nulls: tuple[str, ...] = ()
) -> pd.DataFrame:
    """Return a table as a frame; raise a StoreError if it lacks columns of these kinds.

    columns  name → text, number, whole, flag, texts or wholes
    nulls    columns that may have no value in some rows
    """
    with files.damage(path, todo):
        for name, kind in columns.items():
            if table.column_names.count(name) != 1:
                raise ValueError(f"it has no column {name}")
            column = table.column(name)
            empty = pa.types.is_null(column.type) and (name in nulls or not len(table))
            if not (empty or _KINDS[kind](column.type)):
                raise ValueError(f"its column {name} holds {column.type}, not a {kind}")
            if column.null_count and name not in nulls:
                raise ValueError(f"its column {name} lacks values")
        table.validate(full=True)
        frame: pd.DataFrame = table.to_pandas()
    return frame
