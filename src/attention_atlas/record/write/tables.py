"""What are the rows of inputs.parquet and tokens.parquet?"""

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from attention_atlas.models.inputs import Input
from attention_atlas.names.errors import InputError
from attention_atlas.store.tables import PICTURE_SUMS

_OWN = (
    "input", "kind", "text", "second", "source", "boundary", "prompt", "truncated", "images",
    PICTURE_SUMS,
)  # fmt: skip
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
# Only of patches; a table of texts alone does not have these columns.
_PLACES = {
    "image": pa.int16(),
    "left": pa.float32(),
    "top": pa.float32(),
    "right": pa.float32(),
    "bottom": pa.float32(),
}


def token_table(rows: list[tuple[int, str, dict[str, Any]]]) -> pa.Table:
    """Join (input, stream, columns) in order; return one table, tokens numbered from 0."""
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
    """Return the type of a column: string if it has texts, else float32; null if all are None."""
    kinds = {type(value) for *_, columns in rows for value in columns.get(name, ())} - {type(None)}
    return pa.string() if str in kinds else pa.float32() if kinds else pa.null()


def input_row(
    number: int, given: Input, *, boundary: int, prompt: int, truncated: bool, images: list[str]
) -> dict[str, Any]:
    """Return the row of one input.

    boundary  the first token of the second text
    prompt    how many tokens were not generated
    """
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
    """Return the names of the columns that the user's inputs have besides ours."""
    names: dict[str, None] = {}
    for item in given:
        row = input_row(0, item, boundary=0, prompt=0, truncated=False, images=[])
        names |= dict.fromkeys(row)
    return tuple(name for name in names if name not in _OWN)


def input_table(rows: list[dict[str, Any]], columns: Sequence[str]) -> pa.Table:
    """Return the table of inputs: our columns with fixed types, then the user's columns."""
    types = {
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
    arrays = {
        name: pa.array([row[name] for row in rows], type=kind) for name, kind in types.items()
    }
    for name in columns:
        try:
            arrays[name] = pa.array([row.get(name) for row in rows], from_pandas=True)
        except (pa.ArrowException, OverflowError, ValueError) as problem:
            raise InputError(
                f"column {name!r} has values of different types, or too large, and cannot be "
                f"stored: {problem}"
            ) from problem
    return pa.table(arrays)
