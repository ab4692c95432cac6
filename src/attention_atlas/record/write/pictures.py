"""Where in the atlas are an input's pictures?

They are copied unchanged, so that the atlas can be shown on any machine.
"""

import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from attention_atlas.models.inputs import Input
from attention_atlas.models.media import open_image
from attention_atlas.store.arrived import Arrived
from attention_atlas.store.files import checksum, write_whole
from attention_atlas.store.parts import Contents
from attention_atlas.store.tables import PICTURE_SUMS


def picture_names(number: int, given: Input) -> list[str]:
    """Return the file names of an input's pictures inside the atlas."""
    return [
        f"images/{number:06d}-{index}{_suffix(image)}" for index, image in enumerate(given.images)
    ]


def save_pictures(folder: Path, number: int, given: Input) -> list[str]:
    """Write the pictures of one input into the atlas; return their checksums."""
    sums = []
    for name, image in zip(picture_names(number, given), given.images, strict=True):
        write_whole(folder / name, partial(_save, image))
        sums.append(checksum(folder / name))
    return sums


def with_picture_checksums(
    contents: Contents | Arrived, sums: list[list[str]]
) -> Contents | Arrived:
    """Return a shard whose table of inputs holds the checksums of its pictures, if it has any."""
    if not any(sums):
        return contents
    assert isinstance(contents, Contents)  # shards with pictures come by value
    inputs = contents.tables["inputs"]
    column = pa.array(sums, type=pa.list_(pa.string()))
    tables = {**contents.tables, "inputs": inputs.append_column(PICTURE_SUMS, column)}
    return replace(contents, tables=tables)


def _suffix(image: Any) -> str:
    return Path(image).suffix.lower() if isinstance(image, str | Path) else ".png"


def _save(image: Any, target: Path) -> None:
    if isinstance(image, str | Path):
        shutil.copyfile(image, target)
    else:
        open_image(image).save(target, "PNG")
