"""The rows of inputs.parquet and tokens.parquet."""

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from attention_atlas.models.inputs import Input
from attention_atlas.names.errors import InputError

_OWN = ("input", "kind", "text", "second", "source", "boundary", "prompt", "truncated", "images")
_TOKENS = pa.schema(
    [
        ("token", pa.int64()),
        ("input", pa.int32()),
        ("stream", pa.dictionary(pa.int8(), pa.string())),
        ("position", pa.int32()),
        ("text", pa.string()),
        ("id", pa.int32()),
        ("special", pa.bool_()),
        ("start", pa.int32()),
        ("end", pa.int32()),
        ("segment", pa.int8()),
        ("word", pa.int32()),
        ("row", pa.int16()),
        ("column", pa.int16()),
    ]
)
# Of patches only; a table of words alone does not have them.
_PLACES = {
    "image": pa.int16(),
    "left": pa.float32(),
    "top": pa.float32(),
    "right": pa.float32(),
    "bottom": pa.float32(),
}


def token_table(rows: list[tuple[int, str, dict[str, Any]]]) -> pa.Table:
    """Join (input, stream, columns) in order; tokens are numbered from 0."""
    more = dict.fromkeys(name for *_, columns in rows for name in columns)
    schema = _TOKENS
    for name in more:
        if name not in schema.names:
            schema = schema.append(pa.field(name, _PLACES.get(name) or _kind(name, rows)))
    joined: dict[str, list[Any]] = {name: [] for name in schema.names}
    for number, stream, columns in rows:
        n = len(columns["text"])
        joined["input"] += [number] * n
        joined["stream"] += [stream] * n
        joined["position"] += range(n)
        for name in more:
            joined[name] += columns.get(name) or [-1 if name == "image" else None] * n
    joined["token"] = list(range(len(joined["input"])))
    return pa.table(joined, schema=schema)


def _kind(name: str, rows: list[tuple[int, str, dict[str, Any]]]) -> pa.DataType:
    """Numbers as float32, all else as texts; no kind yet where there is nothing but None."""
    kinds = {type(one) for *_, columns in rows for one in columns.get(name, ())} - {type(None)}
    return pa.string() if str in kinds else pa.float32() if kinds else pa.null()


def input_row(
    number: int, given: Input, *, boundary: int, prompt: int, truncated: bool, images: list[str]
) -> dict[str, Any]:
    """boundary: the first token of the second text, prompt: how many tokens were not generated."""
    row: dict[str, Any] = {
        "input": number,
        "kind": given.kind,
        "text": given.text,
        "second": given.second,
        "source": given.source,
        "boundary": boundary,
        "prompt": prompt,
        "truncated": truncated,
        "images": images,
    }
    for name, value in given.columns.items():
        row[f"{name}_" if name in _OWN else str(name)] = value
    return row


def own_columns(given: Iterable[Input]) -> tuple[str, ...]:
    """List the columns that a person's inputs have besides ours."""
    found: dict[str, None] = {}
    for one in given:
        row = input_row(0, one, boundary=0, prompt=0, truncated=False, images=[])
        found |= dict.fromkeys(row)
    return tuple(name for name in found if name not in _OWN)


def input_table(rows: list[dict[str, Any]], columns: Sequence[str]) -> pa.Table:
    """Our columns in a fixed type, the person's as they are."""
    own = {
        "input": pa.int32(),
        "kind": pa.string(),
        "text": pa.string(),
        "second": pa.string(),
        "source": pa.string(),
        "boundary": pa.int32(),
        "prompt": pa.int32(),
        "truncated": pa.bool_(),
        "images": pa.list_(pa.string()),
    }
    arrays = {name: pa.array([row[name] for row in rows], type=kind) for name, kind in own.items()}
    for name in columns:
        try:
            arrays[name] = pa.array([row.get(name) for row in rows], from_pandas=True)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as problem:
            raise InputError(
                f"column {name!r} mixes kinds of values and cannot be stored: {problem}"
            ) from problem
    return pa.table(arrays)
