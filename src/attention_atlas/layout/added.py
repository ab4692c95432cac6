"""Where do the tokens of a new input lie on the maps of an atlas?

What was fitted to the tokens of a map is fitted again, which gives the same numbers as when the map
was made; then the new points settle among the old ones (`place`, or `newcomers` where the map is
made of attention).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from attention_atlas.layout.device import one_thread
from attention_atlas.layout.joint import join
from attention_atlas.layout.looks import Looks, find_looks
from attention_atlas.layout.neighbours import as_points
from attention_atlas.layout.newcomers import AttentionMap
from attention_atlas.layout.place import Known, place
from attention_atlas.layout.plan import made_of_attention, points_of
from attention_atlas.layout.sight import read_sight
from attention_atlas.names.head import Head
from attention_atlas.store.maps import Float32, Map, MapHeads
from attention_atlas.store.reader import StoredAtlas

Rows = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]


def place_input(
    atlas: StoredAtlas, made: Map, group: MapHeads, rows: Callable[[str], Rows], added: StoredAtlas
) -> Float32:
    """Place all tokens of `added` on a map; returns (heads, N + M, dims), 0 to 1 in each box.

    `rows` tells where the tokens of the map stand among a head's queries and keys.
    """
    asked = made.options["asked"]
    placed = []
    with one_thread(torch.device("cpu")):
        for heads in _layers(group.heads):
            picked = [group.heads.index(head) for head in heads]
            queries = _stack([atlas.queries(head)[rows(head)[0]] for head in heads])
            keys = _stack([atlas.keys(head)[rows(head)[1]] for head in heads])
            fresh = [_stack([of(head) for head in heads]) for of in (added.queries, added.keys)]
            low, high = (torch.from_numpy(group.box[picked, side])[:, None] for side in (0, 1))
            wide = (high - low).clamp_min(torch.finfo(torch.float32).tiny)
            places = low + torch.from_numpy(group.places[picked].astype(np.float32)) / 65535 * wide
            if made_of_attention(asked):
                known = AttentionMap(queries, keys, places)
                looks = _looks(added, heads, fresh)
                new_places = known.place(fresh[0], fresh[1], looks, asked["method"])
            else:
                new_places = _by_distance(queries, keys, fresh, places, asked)
            placed.append(((new_places - low) / wide).numpy().astype(np.float32))
    return np.concatenate(placed)


def _by_distance(
    queries: Tensor, keys: Tensor, fresh: list[Tensor], places: Tensor, asked: Mapping[str, Any]
) -> Tensor:
    joint = join(queries, keys, asked["joint"])
    known = as_points(joint.points(queries, keys), joint.metric)
    new = as_points(joint.points(fresh[0], fresh[1]), joint.metric)
    return place(new, Known(known, places, joint.metric), asked["method"])


def _looks(added: StoredAtlas, heads: list[str], fresh: list[Tensor]) -> Looks:
    """Find what the queries of an added input look at, for some heads of one layer."""
    layer = added.layer_of(heads[0])
    tables = [added.tokens(stream=stream) for stream in (layer.queries, layer.keys)]
    points = points_of(tables, [np.arange(len(table), dtype=np.int64) for table in tables])
    sight = read_sight(added, heads[0], points, torch.device("cpu"))
    numbers = [Head.parse(head).head for head in heads]
    return find_looks(fresh[0], fresh[1], sight, slice(numbers[0], numbers[-1] + 1))


def _stack(vectors: Sequence[Float32]) -> Tensor:
    return torch.from_numpy(np.stack(vectors)).float()


def _layers(heads: Sequence[str]) -> Iterator[list[str]]:
    """Yield the heads layer by layer: they have one width, and their vectors fit in memory."""
    for _, together in groupby(heads, lambda name: Head.parse(name).layer):
        yield list(together)
