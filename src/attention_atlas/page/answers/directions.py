"""Along which directions do a head's queries and keys meet?

directions/L5H1 · along/umap-2d/L5H1/0
"""

from collections.abc import Iterator

import numpy as np

from attention_atlas.measure.directions import Directions
from attention_atlas.measure.directions import directions as find_directions
from attention_atlas.names.errors import PickError
from attention_atlas.page.answers.colours import Column, pack_column
from attention_atlas.page.answers.maps import find_group, find_map, map_rows
from attention_atlas.page.answers.saving import Saving
from attention_atlas.page.answers.subject import Subject
from attention_atlas.page.wire import directions as wire
from attention_atlas.page.wire.maps import NumberColumn
from attention_atlas.store.maps import read_map
from attention_atlas.store.reader import StoredAtlas


def head_directions(subject: Subject, name: str) -> wire.HeadDirections:
    """Return the directions of a head with the tokens at their ends."""
    found = _found(subject, name)
    telling = [
        wire.DirectionEnds(
            [wire.DirectionEnd(end.side, end.sign, end.tokens, end.values) for end in ends]
        )
        for ends in found.ends
    ]
    query, key, mean_key, share, kept = (
        array.astype(np.float32)
        for array in (found.query, found.key, found.mean_key, found.share, found.kept)
    )
    return wire.HeadDirections(found.head, found.count, query, key, mean_key, share, kept, telling)


def along(subject: Subject, map: str, name: str, direction: int) -> wire.DirectionColumn:
    """Return the coordinate of every point of a map along one direction of a head."""
    found = _found(subject, name)
    if not 0 <= direction < found.count:
        raise PickError(f"{name} shows directions 0 to {found.count - 1}, not {direction}")
    assert isinstance(subject, StoredAtlas)
    groups = read_map(find_map(subject, map)).groups
    group = next((key for key, heads in groups.items() if name in heads.heads), None)
    if group is None:
        raise PickError(f"the map {map} has no {name}")
    atlas, _, heads = find_group(subject, map, group)
    rows = map_rows(atlas, heads, name)
    a, b, _ = found.coordinates(atlas.queries(name)[rows[0]], atlas.keys(name)[rows[1]])
    values = np.concatenate([a[:, direction], b[:, direction]])
    most = float(np.abs(values).max(initial=1e-9))
    title = f"direction {direction + 1} of {name}"
    column = pack_column(Column("direction", title, values, span=(-most, most)))
    assert isinstance(column, NumberColumn)
    return wire.DirectionColumn(map, name, direction, column)


def _found(subject: Subject, name: str) -> Directions:
    if not isinstance(subject, StoredAtlas):
        raise PickError(
            "plain attention has no queries and keys; capture the model for them: "
            "aa.neuron_view(aa.capture(model, text))"
        )
    return find_directions(subject, name)


def saved_directions(saving: Saving) -> Iterator[str]:
    """Yield the heads of the picked layer, if the page opens on their directions."""
    atlas = saving.subject
    if saving.picks.get("basis") != "directions" or not isinstance(atlas, StoredAtlas):
        return
    for tower, layer, head in saving.heads():
        if saving.is_picked(tower, layer) and atlas.has("query", layer.layer, tower.name):
            yield f"directions/{head}"
