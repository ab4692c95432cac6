"""How does a part get into an atlas when another machine writes its files?

The other machine writes them into a folder that both reach: a path, or a URL that fsspec knows
(s3://…, gs://…). Only the caller puts files into the atlas. It moves those of a path, which costs
nothing on one file system, and downloads those of a URL, whose checksums it then compares.

    SHARED/RUN/KEY/arrays.safetensors
    SHARED/RUN/KEY/tokens.parquet        one of its tables
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from attention_atlas.names.errors import StoreError
from attention_atlas.store import files

ARRAYS = "arrays.safetensors"


@dataclass(frozen=True)
class Arrived:
    """A part whose files lie in a shared folder, with its entry for the journal."""

    folder: str  # a path or a URL
    entry: Mapping[str, Any]
    checksums: Mapping[str, str]  # by file

    def place(self, name: str, target: Path) -> None:
        """Put one file of the part at `target`."""
        files.write_whole(target, lambda part: self._get(name, part))

    def forget(self) -> None:
        """Delete the shared folder of this part."""
        forget(self.folder)

    def _get(self, name: str, part: Path) -> None:
        if not is_url(self.folder):
            shutil.move(Path(self.folder) / name, part)
            return
        _remote(self.folder, lambda system, path: system.get_file(f"{path}/{name}", str(part)))
        if files.checksum(part) != self.checksums[name]:
            raise StoreError(
                f"{self.folder}/{name} was damaged on its way; run the same command again to resume"
            )


Write = Callable[[Callable[[str], Path]], dict[str, Any]]


def leave(shared: str, write: Write) -> Arrived:
    """Write the files of a part into a new folder inside `shared`; returns what the caller needs.

    write  writes each file to the path that it is given for its name; returns the entry
    """
    folder = f"{shared.rstrip('/')}/{uuid4().hex}"
    if not is_url(shared):
        return _written(folder, Path(folder), write)
    with tempfile.TemporaryDirectory(prefix="attention-atlas-") as local:
        arrived = _written(folder, Path(local), write)

        def upload(system: Any, path: str) -> None:
            system.makedirs(path, exist_ok=True)
            for name in arrived.checksums:
                system.put_file(str(Path(local) / name), f"{path}/{name}")

        _remote(folder, upload)
    return arrived


def _written(folder: str, local: Path, write: Write) -> Arrived:
    entry = write(lambda name: local / name)
    names = sorted(os.listdir(local))
    return Arrived(folder, entry, {name: files.checksum(local / name) for name in names})


def is_url(place: str) -> bool:
    """Tell whether a shared folder is a URL of fsspec."""
    return "://" in place


def check_shared(shared: str) -> None:
    """Raise a StoreError unless the shared folder can be written to from here."""

    def write(path: Callable[[str], Path]) -> dict[str, Any]:
        files.write_json(path("trial.json"), {})
        return {}

    leave(shared, write).forget()


def forget(folder: str) -> None:
    """Delete a folder inside the shared one, if it is there."""
    if not is_url(folder):
        shutil.rmtree(folder, ignore_errors=True)
        return
    with suppress(StoreError):
        _remote(folder, lambda system, path: system.rm(path, recursive=True))


def _remote(url: str, act: Callable[[Any, str], object]) -> None:
    import fsspec

    try:
        system, path = fsspec.core.url_to_fs(url)
        act(system, path)
    except (OSError, ValueError, ImportError) as problem:
        raise StoreError(f"the shared folder {url} cannot be used: {problem}") from problem
