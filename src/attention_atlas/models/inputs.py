"""Which inputs does a person give?

A text, a pair, a file, a folder, a table, a picture, a sound, ready-made tensors, or a list of
these: `read_inputs` turns any of them into a list of `Input`. Nothing here knows a model.
"""

import os
import random
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image

from attention_atlas.images.probes import read_cells
from attention_atlas.models.media import (
    IMAGE_SUFFIXES,
    SOUND_SUFFIXES,
    images_in,
    read_sound,
)
from attention_atlas.models.tables import TABLES, TEXT_SUFFIXES, Table, read_lines, text_column
from attention_atlas.names.errors import InputError

_TENSOR_NAMES = {
    "input_ids",
    "inputs_embeds",
    "pixel_values",
    "input_features",
    "input_values",
}
_ENTRY_NAMES = {"text", "second", "image", "images", "audio", "rate"}


@dataclass(frozen=True)
class Input:
    """One input. Pictures may be paths: they are opened when they are needed."""

    kind: str  # text, pair, image, audio, tensors or image-text
    text: str | None = None
    second: str | None = None  # second text of a pair; for encoder–decoders the target
    images: tuple[Any, ...] = ()
    audio: "np.ndarray[Any, Any] | None" = None  # mono samples, between -1 and 1
    rate: int | None = None
    tensors: Mapping[str, Any] | None = None  # leading axis 1
    source: str | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)
    cells: "pd.DataFrame | None" = field(default=None, compare=False)  # values of a probe
    may_skip: bool = False  # one of a folder: left out, with a note, where it cannot be opened


def read_inputs(
    source: Any,
    *,
    column: str | None = None,
    second_column: str | None = None,
    limit: int | None = None,
    seed: int = 0,
) -> list[Input]:
    """Read all inputs of `source`, or `limit` of them drawn evenly and kept in order."""
    inputs = _read(source, column, second_column)
    if not inputs:
        raise InputError("the list of inputs is empty; give at least one input")
    for number, given in enumerate(inputs):
        _refuse_half_characters(number, given)
    if limit is None or limit >= len(inputs):
        return inputs
    if limit < 1:
        raise InputError(f"a limit of {limit} inputs leaves none; give 1 or more")
    drawn = random.Random(seed).sample(range(len(inputs)), limit)  # noqa: S311
    return [inputs[i] for i in sorted(drawn)]


def _refuse_half_characters(number: int, given: Input) -> None:
    """Refuse texts that are no Unicode: they can be neither stored nor shown."""
    for name, text in (("text", given.text), ("second text", given.second),
                       *given.columns.items()):  # fmt: skip
        if isinstance(text, str) and not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError as error:
                raise InputError(
                    f"the {name} of input {number} has half of a character "
                    f"({text[error.start]!a}) at {error.start}; remove it"
                ) from error


def _read(source: Any, column: str | None, second_column: str | None) -> list[Input]:
    if isinstance(source, Input):
        return [source]
    if isinstance(source, str) and not is_path(source):
        return [_from_text(source)]
    if isinstance(source, str | Path):
        return _from_path(Path(source).expanduser(), column, second_column)
    if isinstance(source, tuple) and len(source) == 2 and all(isinstance(s, str) for s in source):
        return [_from_entry({"text": source[0], "second": source[1]})]
    if isinstance(source, pd.DataFrame):
        return _from_table(Table.of_frame(source), column, second_column, None)
    if isinstance(source, Image.Image):
        return [Input("image", images=(source,))]
    if isinstance(source, np.ndarray):
        return [_from_samples(source)]
    if isinstance(source, Mapping):
        return _from_mapping(source)
    if isinstance(source, list | tuple):
        return [given for entry in source for given in _read(entry, column, second_column)]
    raise InputError(
        f"an input of type {type(source).__name__} cannot be read; give a text, a pair, a path, "
        "an image, a table, an array of samples, tensors, or a list of these"
    )


def is_path(text: str) -> bool:
    """Tell whether a text is read as the name of a file or folder."""
    with suppress(ValueError):  # a zero byte, half of a character
        if os.path.exists(os.path.expanduser(text)):
            return True
    known = (*TEXT_SUFFIXES, *TABLES, *IMAGE_SUFFIXES, *SOUND_SUFFIXES)
    return not any(c.isspace() for c in text) and text.lower().endswith(known)


def _from_text(text: str) -> Input:
    if not text.strip():
        raise InputError("an empty text was given; write at least one word")
    return Input("text", text=text)


def _from_path(path: Path, column: str | None, second_column: str | None) -> list[Input]:
    suffix = path.suffix.lower()
    if not path.exists():
        raise InputError(f"no file is called {path}; check the name and the folder")
    if path.is_dir():
        known = read_cells(path)
        return [
            Input("image", images=(p,), source=p.name, cells=known.get(p.name), may_skip=True)
            for p in images_in(path)
        ]
    if suffix in TEXT_SUFFIXES:
        return [Input("text", text=line, source=path.name) for line in read_lines(path)]
    if suffix in TABLES:
        return _from_table(TABLES[suffix](path), column, second_column, path.name)
    if suffix in IMAGE_SUFFIXES:
        return [Input("image", images=(path,), source=path.name)]
    if suffix in SOUND_SUFFIXES:
        samples, rate = read_sound(path)
        return [Input("audio", audio=samples, rate=rate, source=path.name)]
    raise InputError(
        f"{path.name} is not a kind of file that can be read; give "
        f"{', '.join((*TEXT_SUFFIXES, *TABLES, *SOUND_SUFFIXES))}, an image or a folder of images"
    )


def _from_table(
    table: Table, column: str | None, second_column: str | None, source: str | None
) -> list[Input]:
    """Read one input per row; rows without a text are left out, like blank lines of a text file."""
    where = source or "the table"
    first = text_column(table, column, where)
    names = [first] if second_column is None else [first, second_column]
    texts = [table.texts(name, where) for name in names]
    others = [name for name in table.columns if name not in names]
    inputs = [
        Input(
            "text" if second_column is None else "pair",
            text=row[0],
            second=None if second_column is None else row[1],
            source=source,
            columns={name: table.columns[name][i] for name in others},
        )
        for i, row in enumerate(zip(*texts, strict=True))
        if all(text.strip() for text in row)
    ]
    if not inputs:
        raise InputError(f"{where} has no text in {' and '.join(names)}; give a table with texts")
    return inputs


def _from_mapping(given: Mapping[str, Any]) -> list[Input]:
    if _TENSOR_NAMES & set(given):
        return _from_tensors(given)
    if _ENTRY_NAMES & set(given):
        return [_from_entry(given)]
    raise InputError(
        f"an input with the keys {', '.join(map(str, given))} cannot be read; give text, second, "
        f"image or audio, or tensors such as {', '.join(sorted(_TENSOR_NAMES))}"
    )


def _from_entry(given: Mapping[str, Any]) -> Input:
    text, second, audio = given.get("text"), given.get("second"), given.get("audio")
    for name, value in (("text", text), ("second", second)):
        if value is not None and not (isinstance(value, str) and value.strip()):
            raise InputError(f"the {name} of an input is {value!r}; write at least one word")
    images = given.get("images", given.get("image"))
    images = images if isinstance(images, list | tuple) else [] if images is None else [images]
    pictures = tuple(Path(p) if isinstance(p, str) else p for p in images)
    columns = {name: value for name, value in given.items() if name not in _ENTRY_NAMES}
    if pictures:
        kind = "image" if text is None else "image-text"
        return Input(kind, text, second, pictures, columns=columns)
    if audio is not None:
        sound = _from_path(Path(audio), None, None)[0] if isinstance(audio, str | Path) else None
        sound = sound or _from_samples(audio, given.get("rate"))
        return replace(sound, text=text, second=second, columns=columns)
    if text is None:
        raise InputError("an input has neither text, image nor audio; give at least one of them")
    return Input("text" if second is None else "pair", text, second, columns=columns)


def _from_samples(samples: Any, rate: int | None = None) -> Input:
    sound = np.asarray(samples)
    if sound.ndim != 1 or not np.issubdtype(sound.dtype, np.floating) or not sound.size:
        raise InputError(
            f"an array of shape {sound.shape} and type {sound.dtype} is not a sound; "
            "give one row of samples as floats between -1 and 1"
        )
    return Input("audio", audio=sound.astype(np.float32), rate=rate)


def _from_tensors(given: Mapping[str, Any]) -> list[Input]:
    """Split a batch into its rows: four padded rows are four inputs."""
    tensors = {name: _array(name, value) for name, value in given.items()}
    single = ("input_ids", 1), ("pixel_values", 3)
    if any(name in tensors and tensors[name].ndim == axes for name, axes in single):
        tensors = {name: value[None] for name, value in tensors.items()}
    rows = {len(value) for value in tensors.values()}
    if len(rows) > 1:  # packed pictures have no batch axis, so this is one input
        return [Input("tensors", tensors=tensors)]
    return [
        Input("tensors", tensors={name: value[i : i + 1] for name, value in tensors.items()})
        for i in range(rows.pop())
    ]


def _array(name: str, value: Any) -> Any:
    try:
        return value if hasattr(value, "ndim") else np.asarray(value)
    except ValueError as error:
        raise InputError(f"the rows of {name} differ in length; give each its own entry") from error
