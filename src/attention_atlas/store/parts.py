"""Which parts of a long piece of work are done?

Capture, layout and measure keep one journal each: a folder of numbered parts. Parts may be added in
any order and any of them may be missing, so work that was interrupted resumes with those.

    parts/00003.safetensors      the arrays of part 3 (`arrays_in` puts them in another folder)
    parts/00003.tokens.parquet   one of its tables
    parts/00003.json             its facts; written last: only then is part 3 done
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

import pyarrow as pa

from attention_atlas.names.errors import StoreError
from attention_atlas.store import files
from attention_atlas.store.arrived import ARRAYS, Arrived, leave
from attention_atlas.store.files import Array, Numbers
from attention_atlas.store.tensor_file import TensorFile
from attention_atlas.store.typed import decode

_TODO = "run the same command again"


@dataclass(frozen=True)
class Contents:
    """The arrays, tables and facts of one part, in memory."""

    arrays: Mapping[str, Numbers] = field(default_factory=dict)
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)  # JSON


@dataclass(frozen=True)
class Part:
    """One entry of the journal: a part whose files are complete."""

    number: int
    rows: dict[str, int]  # of each of its tables
    bytes: int  # of the file of its arrays
    checksum: str
    facts: dict[str, Any]
    tables: dict[str, str]  # name → checksum


def write_files(contents: Contents, path: Callable[[str], Path]) -> dict[str, Any]:
    """Write the files of a part, each to the path of its name; return its entry."""
    checksum = files.write_tensors(path(ARRAYS), contents.arrays)
    tables = {}
    for name, table in contents.tables.items():
        files.write_table(path(f"{name}.parquet"), table)
        tables[name] = files.checksum(path(f"{name}.parquet"))
    return {
        "rows": {name: table.num_rows for name, table in contents.tables.items()},
        "bytes": path(ARRAYS).stat().st_size,
        "checksum": checksum,
        "facts": dict(contents.facts),
        "tables": tables,
    }


def leave_part(shared: str, contents: Contents) -> Arrived:
    """Write a part into a shared folder, for the caller to add."""
    return leave(shared, lambda path: write_files(contents, path))


class Journal:
    """A folder of parts that threads of one process, the caller, add to and read from."""

    def __init__(self, folder: Path, arrays_in: Path | None = None):
        self.folder, self._arrays_in = folder, arrays_in or folder
        self._adding = Lock()
        self.parts = self._whole_parts()  # by number, in order

    @classmethod
    def beside(cls, path: Path, asked: Mapping[str, Any]) -> "Journal":
        """Open the journal for making the file `path`; each `asked` has a journal of its own."""
        text = json.dumps(asked, sort_keys=True, default=str)
        key = hashlib.sha256(text.encode()).hexdigest()[:12]
        return cls(path.with_name(f"{path.stem}.{key}.parts"))

    def missing(self, count: int) -> list[int]:
        """Return which of `count` parts are not done yet."""
        return [number for number in range(count) if number not in self.parts]

    def add(self, number: int, contents: Contents | Arrived) -> Part:
        """Write a part to disk, or move it from a shared folder; return its entry."""

        def path(name: str) -> Path:
            return self.arrays_path(number) if name == ARRAYS else self._path(number, name)

        if isinstance(contents, Arrived):
            for name in contents.checksums:
                contents.place(name, path(name))
            entry = dict(contents.entry)
            contents.forget()
        else:
            entry = write_files(contents, path)
        files.write_json(self._path(number, "json"), entry)
        part = Part(number, **entry)
        with self._adding:
            self.parts = dict(sorted({**self.parts, number: part}.items()))
        return part

    def arrays(self, number: int) -> dict[str, Array]:
        """Read the arrays of a part, by name."""
        file = TensorFile(self.arrays_path(number), _TODO)
        file.verify(self.parts[number].checksum)
        return {name: file.tensor(name) for name in file.names}

    def table(self, number: int, name: str) -> pa.Table:
        """Read one table of a part."""
        path = self._path(number, f"{name}.parquet")
        return files.read_table(path, self.parts[number].tables[name], _TODO)

    def arrays_path(self, number: int) -> Path:
        """Return the path of a part's arrays."""
        return self._arrays_in / f"{number:05d}.safetensors"

    def sweep(self) -> None:
        """Delete the journal, once the file it was for is complete."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _path(self, number: int, ending: str) -> Path:
        return self.folder / f"{number:05d}.{ending}"

    def _whole_parts(self) -> dict[int, Part]:
        """Return the parts whose files are whole, by their checksums; others are made again."""
        parts = {}
        for path in sorted(self.folder.glob("*.json")):
            try:
                part = decode(Part, {"number": int(path.stem), **files.read_json(path)})
                self._verify(part)
            except (ValueError, StoreError):  # damaged, or from an earlier version
                continue
            parts[part.number] = part
        return parts

    def _verify(self, part: Part) -> None:
        TensorFile(self.arrays_path(part.number)).verify(part.checksum)
        for name, checksum in part.tables.items():
            files.read_table(self._path(part.number, f"{name}.parquet"), checksum)
