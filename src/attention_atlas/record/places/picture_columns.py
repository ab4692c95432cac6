"""What do the tokens of an input show? Adds places, colours and values of probes."""

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
    """Add to the columns of each stream what its tokens show of the input's pictures."""
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
    seats = text_seats(model, columns["id"], item.shown, item.tensors)
    if seats is None:
        return
    image, box = seats
    row, column = grid_places(box)
    columns.update(place_columns(image, box))
    columns.update(row=row.tolist(), column=column.tolist())


def boxes(columns: Columns) -> Floats:
    """Return the boxes of a stream's tokens, (N, 4)."""
    return np.array([columns[side] for side in ("left", "top", "right", "bottom")], np.float64).T


def _colours(columns: Columns, pictures: list[Any]) -> Columns:
    image, box = np.array(columns["image"]), boxes(columns)
    out = np.full((len(image), len(NAMES)), np.nan)
    for number, picture in enumerate(pictures):
        inside = image == number
        if inside.any():
            out[inside] = swatches(picture, box[inside])
    return {name: out[:, index].tolist() for index, name in enumerate(NAMES)}
