"""Where does an added input lie on a map? extra/umap-2d/encoder/200

The other points stay in place. The new points have the same columns, in the ranges of the map's
colours, so that one legend is right for both.
"""

import numpy as np
import pandas as pd

from attention_atlas.names.errors import PickError
from attention_atlas.page.answers.grown import Grown
from attention_atlas.page.answers.maps import (
    find_group,
    make_norms,
    make_points,
    map_points,
    map_rows,
)
from attention_atlas.page.wire import maps as wire


def map_extra(subject: object, name: str, group: str, number: int) -> wire.MapExtra:
    """Return the places, points and vector lengths of an added input on a map."""
    from attention_atlas.layout.added import place_input

    atlas, layout, heads = find_group(subject, name, group)
    new = atlas.new(number) if isinstance(atlas, Grown) else None
    if new is None or not isinstance(atlas, Grown):
        raise PickError(f"input {number} was not added; it is a part of the map")
    places = place_input(atlas.base, layout, heads, lambda head: map_rows(atlas, heads, head), new)
    layer = atlas.layer_of(heads.heads[0])
    sides = [atlas.tokens(number, stream) for stream in (layer.queries, layer.keys)]
    like = map_points(subject, name, group)
    points = make_points(atlas, pd.concat(sides), name, group, len(sides[0]), like)
    lengths = [
        (np.linalg.norm(new.queries(head), axis=1), np.linalg.norm(new.keys(head), axis=1))
        for head in heads.heads
    ]
    return wire.MapExtra(places, points, make_norms(name, group, lengths))
