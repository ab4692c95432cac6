"""What do the tokens of an input show? Places of placeholders, colours, values of probes."""

from typing import Any

import numpy as np
from torch import nn

from attention_atlas.images.patch_colours import NAMES, swatches
from attention_atlas.images.probes import known_values
from attention_atlas.models.encode import Encoded
from attention_atlas.models.inputs import Input
from attention_atlas.models.media import open_image
from attention_atlas.record.places.patch_seats import Floats
from attention_atlas.record.places.placeholders import grid_places, text_seats
from attention_atlas.record.places.streams import place_columns

Columns = dict[str, Any]


def add_pictures(
    model: nn.Module, streams: dict[str, Columns], item: Encoded, given: Input
) -> None:
    """Put into the columns of each stream what its tokens show of the input's pictures."""
    if item.shown is None:
        return
    for name in item.streams:
        _add_placeholders(model, streams[name], item)
    pictures = [open_image(image) for image in given.images]
    for columns in streams.values():
        if "image" in columns:
            columns.update(_colours(columns, pictures))
            if given.cells is not None:
                columns.update(known_values(given.cells, boxes(columns)))


def _add_placeholders(model: nn.Module, columns: Columns, item: Encoded) -> None:
    assert item.shown is not None
    found = text_seats(model, columns["id"], item.shown, item.tensors)
    if found is None:
        return
    image, box = found
    row, column = grid_places(box)
    columns.update(place_columns(image, box))
    columns.update(row=row.tolist(), column=column.tolist())


def boxes(columns: Columns) -> Floats:
    """(N, 4)"""
    return np.array([columns[side] for side in ("left", "top", "right", "bottom")], np.float64).T


def _colours(columns: Columns, pictures: list[Any]) -> Columns:
    image, box = np.array(columns["image"]), boxes(columns)
    out = np.full((len(image), len(NAMES)), np.nan)
    for number, picture in enumerate(pictures):
        mine = image == number
        if mine.any():
            out[mine] = swatches(picture, box[mine])
    return {name: out[:, at].tolist() for at, name in enumerate(NAMES)}
