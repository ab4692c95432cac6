"""Where does an added input lie on a map? extra/umap-2d/encoder/200

The map does not move. The new points carry what every point carries, in the ranges of the map's
own colours, so that one legend serves both.
"""

import numpy as np
import pandas as pd

from attention_atlas.names.errors import PickError
from attention_atlas.page.answers.grown import Grown
from attention_atlas.page.answers.maps import (
    find_group,
    layer_of,
    make_norms,
    make_points,
    map_points,
    map_rows,
)
from attention_atlas.page.wire import maps as wire


def map_extra(subject: object, name: str, group: str, number: int) -> wire.MapExtra:
    from attention_atlas.layout.added import place_input

    atlas, made, found = find_group(subject, name, group)
    new = atlas.new(number) if isinstance(atlas, Grown) else None
    if new is None or not isinstance(atlas, Grown):
        raise PickError(f"input {number} was not added; it is on the map itself")
    places = place_input(atlas.base, made, found, lambda head: map_rows(atlas, found, head), new)
    layer = layer_of(atlas, found.heads[0])
    sides = [atlas.tokens(number, stream) for stream in (layer.queries, layer.keys)]
    like = map_points(subject, name, group)
    points = make_points(atlas, pd.concat(sides), name, group, len(sides[0]), like)
    lengths = [
        (np.linalg.norm(new.queries(head), axis=1), np.linalg.norm(new.keys(head), axis=1))
        for head in found.heads
    ]
    return wire.MapExtra(places, points, make_norms(name, group, lengths))
