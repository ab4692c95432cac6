"""Which texts does a file hold?

A line a text in .txt; a row an input in .jsonl, .csv, .tsv and .parquet, where one column is the
text and all others travel along as the person's own.
"""

import io
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from attention_atlas.names.errors import InputError
from attention_atlas.store.files import open_plain

TEXT_SUFFIXES = (".txt",)


@dataclass(frozen=True)
class Table:
    """Columns of equal length; a missing value is None."""

    columns: dict[str, list[Any]]

    @classmethod
    def of_frame(cls, frame: pd.DataFrame) -> "Table":
        plain = frame.astype(object).where(frame.notna(), None)
        return cls({str(name): plain[name].tolist() for name in plain.columns})

    def is_text(self, name: str) -> bool:
        present = [value for value in self.columns[name] if value is not None]
        return bool(present) and all(isinstance(value, str) for value in present)

    def texts(self, name: str, where: str) -> list[str]:
        """Get a column as texts, empty where there is none."""
        if name not in self.columns:
            raise InputError(_no_column(name, self, where))
        for value in self.columns[name]:
            if value is not None and not isinstance(value, str | int | float):
                raise InputError(
                    f"column {name!r} of {where} holds {type(value).__name__} values, not texts; "
                    f"choose another of {', '.join(self.columns)}"
                )
        return ["" if value is None else str(value) for value in self.columns[name]]


def text_column(table: Table, asked: str | None, where: str) -> str:
    """Choose the column that was asked for, else `text`, else the only one that holds texts."""
    if asked is not None:
        if asked not in table.columns:
            raise InputError(_no_column(asked, table, where))
        return asked
    if "text" in table.columns:
        return "text"
    texts = [name for name in table.columns if table.is_text(name)]
    if len(texts) != 1:
        raise InputError(
            f"{where} does not say which column is the text; it has {', '.join(table.columns)}: "
            "name one with column"
        )
    return texts[0]


def _no_column(asked: str, table: Table, where: str) -> str:
    return f"{where} has no column {asked!r}; it has {', '.join(table.columns)}"


def read_lines(path: Path) -> list[str]:
    """Read the lines that are not blank."""
    lines = [line for line in _text_of(path).splitlines() if line.strip()]
    if not lines:
        raise InputError(f"{path.name} is empty; give a file with a text on each line")
    return lines


def _bytes_of(path: Path) -> bytes:
    try:
        with os.fdopen(open_plain(path), "rb") as file:
            return file.read()
    except OSError as error:
        raise InputError(
            f"{path.name} cannot be read: {error.strerror}; check the file and its permissions"
        ) from error


def _text_of(path: Path) -> str:
    try:
        text = _bytes_of(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path.name} is not a text file; save it as UTF-8 text") from error
    if "\0" in text:
        raise InputError(f"{path.name} is not a text file; save it as UTF-8 text")
    return text


def _read_jsonl(path: Path) -> Table:
    rows = []
    for number, line in enumerate(_text_of(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            said = getattr(error, "msg", "") or str(error)
            raise InputError(
                f"line {number} of {path.name} is not JSON ({said[:80]}); correct or remove it"
            ) from error
        row = {"text": row} if isinstance(row, str) else row
        if not isinstance(row, dict):
            raise InputError(
                f"line {number} of {path.name} is a {type(row).__name__}; write an object or a text"
            )
        for name, value in row.items():
            if isinstance(value, int) and abs(value) >= 2**63:
                raise InputError(
                    f"line {number} of {path.name}: {name} is a number of {len(str(value))} digits,"
                    " more than can be stored; write it as a text, in quotes"
                )
        rows.append(row)
    names = list(dict.fromkeys(name for row in rows for name in row))
    return _filled(Table({name: [row.get(name) for row in rows] for name in names}), path)


def _read_csv(path: Path, separator: str = ",") -> Table:
    text = _text_of(path)
    try:
        # "NA" and "null" are words a person may want to look at; only an empty cell is missing
        frame = pd.read_csv(
            io.StringIO(text),
            sep=separator,
            keep_default_na=False,
            na_values=[""],
            dtype_backend="numpy_nullable",
            low_memory=False,
        )
    except pd.errors.EmptyDataError as error:
        raise InputError(f"{path.name} is empty; give a file with a header and rows") from error
    except pd.errors.ParserError as error:
        raise InputError(f"{path.name} is not a table ({_short(error)}); correct it") from error
    if not isinstance(frame.index, pd.RangeIndex):
        # pandas takes the first fields of each row as its name, and the text from a wrong column
        raise InputError(
            f"rows of {path.name} have {frame.index.nlevels} more fields than its header has names "
            f"({', '.join(map(str, frame.columns))}); put texts that hold the separator in quotes, "
            "or name every column"
        )
    return _filled(Table.of_frame(frame), path)


def _read_tsv(path: Path) -> Table:
    return _read_csv(path, separator="\t")


def _read_parquet(path: Path) -> Table:
    try:
        os.close(open_plain(path))
        table = Table(pq.read_table(path).to_pydict())
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        raise InputError(f"{path.name} is not a Parquet file; give one, or rename it") from error
    return _filled(table, path)


def _filled(table: Table, path: Path) -> Table:
    if not any(table.columns.values()):
        raise InputError(f"{path.name} is empty; give a file with at least one row")
    return table


def _short(error: Exception) -> str:
    return str(error).strip().splitlines()[-1].removesuffix(".")


TABLES: dict[str, Callable[[Path], Table]] = {
    ".jsonl": _read_jsonl,
    ".csv": _read_csv,
    ".tsv": _read_tsv,
    ".parquet": _read_parquet,
}
